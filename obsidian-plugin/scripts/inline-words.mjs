import ts from "typescript";

/**
 * Puts the words of `src/en.ts` where they are used, for a release. In the source they are in one object, which is
 * read by name in a hundred places; to a minifier that is an object somebody might change. TypeScript knows better: an
 * access whose member is declared in `en.ts` is that text. Every text becomes a constant of its own, every such access
 * a use of the constant, and what is reached in another way (an index, a part of the object that is handed on) stays
 * in the object.
 */

/**
 * @param {ts.Program} program
 * @param {string} src the folder of the source, with a slash
 * @returns {Map<string, string>} the changed source of every file that uses words, by path
 */
export function inlineWords(program, src) {
	const EN = `${src}en.ts`;
	const checker = program.getTypeChecker();
	const source = program.getSourceFile(EN);

	/** The members of `en` and of its sections: those with texts, and those with more members. */
	const texts = new Map();
	const sections = new Map();
	let whole = null;
	function read(literal, path) {
		for (const member of literal.properties) {
			const name = `${path}_${member.name.text}`;
			if (ts.isObjectLiteralExpression(member.initializer)) {
				sections.set(member, name);
				read(member.initializer, name);
			} else texts.set(member, name);
		}
	}
	source.forEachChild((node) => {
		if (!ts.isVariableStatement(node)) return;
		whole = node;
		read(node.declarationList.declarations[0].initializer.expression, "en");
	});

	/** What an expression is of `en`: the member that its type, or its own symbol, is declared by. */
	const typed = new Map([...sections.keys()].map((member) => [checker.getTypeAtLocation(member.initializer), member]));
	const sectionOf = (type) => typed.get(type) ?? [...typed].find(([, member]) => type.symbol?.declarations?.includes(member.initializer))?.[1];

	const root = checker.getTypeAtLocation(whole.declarationList.declarations[0].name);

	const kept = new Set();
	const keepAll = (section) => {
		for (const member of section.initializer.properties) {
			if (sections.has(member)) keepAll(member);
			else kept.add(member);
		}
	};
	const keep = (section, names) => {
		for (const member of section.initializer.properties) {
			if (names.has(member.name.text)) sections.has(member) ? keepAll(member) : kept.add(member);
		}
	};

	/** Whether evaluating it does nothing that would be missed. */
	const plain = (node) =>
		ts.isIdentifier(node) ||
		node.kind === ts.SyntaxKind.ThisKeyword ||
		(ts.isPropertyAccessExpression(node) && !node.questionDotToken && plain(node.expression));

	const changed = new Map();
	for (const file of program.getSourceFiles()) {
		if (!file.fileName.startsWith(src) || file.fileName === EN) continue;
		const edits = [];
		const used = new Set();
		const visit = (node) => {
			if (ts.isTypeNode(node)) return;
			if (ts.isPropertyAccessExpression(node)) {
				// of two sections of which it may be either, it has both declarations
				const members = (checker.getSymbolAtLocation(node.name)?.declarations ?? []).filter((one) => texts.has(one));
				const [member] = members;
				if (members.length > 1 || (member && !plain(node.expression))) for (const one of members) kept.add(one);
				else if (member) {
					used.add(texts.get(member));
					edits.push([node.getStart(file), node.end, texts.get(member)]);
					return;
				}
			}
			if (ts.isBindingElement(node)) {
				const pattern = checker.getTypeAtLocation(node.parent);
				const section = sectionOf(pattern);
				if (section) keep(section, new Set([(node.propertyName ?? node.name).text]));
			}
			if (ts.isElementAccessExpression(node) && checker.getTypeAtLocation(node.expression) === root) {
				throw new Error(`${file.fileName}: a section of the words is named by its own name, and not by an index`);
			}
			if (ts.isExpression(node)) {
				const section = sectionOf(checker.getTypeAtLocation(node));
				if (section && escape(node, section)) return;
			}
			node.forEachChild(visit);
		};
		/** A section that is more than the left side of a dot keeps what can be read from it there. */
		const escape = (node, section) => {
			const { parent } = node;
			if (ts.isPropertyAccessExpression(parent)) return;
			if (ts.isVariableDeclaration(parent) && !parent.type) {
				if (parent.initializer !== node) return;
				// most often nothing is left to read from the variable, and a minifier sees that of a constant
				if (!plain(node)) return;
				used.add("en");
				edits.push([node.getStart(file), node.end, sections.get(section).replace("en_", "en_.").replace(/\.(\w+?)_/g, ".$1.")]);
				return true;
			}
			if (ts.isElementAccessExpression(parent) && parent.expression === node) {
				const index = checker.getTypeAtLocation(parent.argumentExpression);
				const all = index.isUnion() ? index.types : [index];
				if (all.every((one) => one.isStringLiteral())) keep(section, new Set(all.map((one) => one.value)));
				else keepAll(section);
				return;
			}
			const wanted = checker.getContextualType(node);
			if (wanted && sectionOf(wanted) === section) return;
			// what it is read as may name a part of it; anything looser, such as `Object.entries`, reads all of it
			const own = new Set(section.initializer.properties.map((member) => member.name.text));
			const names = wanted?.getProperties().map((one) => one.name) ?? [];
			if (names.length > 0 && names.every((name) => own.has(name))) keep(section, new Set(names));
			else keepAll(section);
		};
		visit(file);
		if (edits.length === 0) continue;
		let text = file.text;
		for (const [start, end, name] of edits.reverse()) {
			// `{ text }` is `{ text: text }`: only whole accesses are replaced, so nothing else has to be looked at
			text = text.slice(0, start) + name + text.slice(end);
		}
		changed.set(file.fileName, `import { ${[...used].map((name) => (name === "en" ? "en as en_" : name)).join(", ")} } from ${JSON.stringify(EN)};\n${text}`);
	}

	const constants = [...texts].map(([member, name]) => `export const ${name} = ${member.initializer.getText(source)};`);
	const object = (literal) =>
		`{${literal.properties
			.map((member) => {
				if (sections.has(member)) return `${member.name.text}: ${object(member.initializer)}`;
				return kept.has(member) ? `${member.name.text}: ${texts.get(member)}` : "";
			})
			.filter(Boolean)
			.join(", ")}}`;
	const rest = object(whole.declarationList.declarations[0].initializer.expression);
	changed.set(EN, `${constants.join("\n")}\nexport const en = ${rest};\n`);
	return changed;
}
