/** Those who want to hear of something. */
export interface Listeners<T> {
	/** Be told from now on; returns how to end that. */
	add: (listener: (news: T) => unknown) => () => void;
	tell: (news: T) => void;
}

/** Nobody listens yet. One who fails keeps nobody else from hearing. */
export function listeners<T>(): Listeners<T> {
	const all = new Set<(news: T) => unknown>();
	return {
		add(listener) {
			all.add(listener);
			return () => {
				all.delete(listener);
			};
		},
		tell(news) {
			for (const listener of [...all]) {
				try {
					listener(news);
				} catch (error) {
					console.error(error);
				}
			}
		},
	};
}
