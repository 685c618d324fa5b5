import { createServer, request, type Server } from "node:http";

/** STAND-IN until the daemon listens itself: TCP with a token and CORS, before its Unix socket. */
export function listen(port: number, socketPath: string, token: string): Promise<Server> {
	const server = createServer((asked, reply) => {
		const cors = { "access-control-allow-origin": "http://localhost", vary: "Origin", "access-control-allow-headers": "authorization, content-type", "access-control-allow-methods": "GET, POST, PATCH, DELETE" };
		if (asked.method === "OPTIONS") {
			reply.writeHead(204, cors);
			reply.end();
			return;
		}
		if (asked.headers.authorization !== `Bearer ${token}`) {
			reply.writeHead(401, { ...cors, "content-type": "application/json" });
			reply.end('{"error":{"code":"unauthorized","message":"no token","hint":""}}');
			return;
		}
		const sent = request({ socketPath, method: asked.method, path: asked.url, headers: { ...asked.headers, host: "tarsd", authorization: "", origin: "" }, agent: false }, (answer) => {
			reply.writeHead(answer.statusCode ?? 500, { ...cors, "content-type": answer.headers["content-type"] ?? "application/json" });
			answer.pipe(reply);
			answer.on("error", () => reply.destroy());
		});
		sent.on("error", () => reply.destroy());
		reply.on("close", () => sent.destroy());
		asked.pipe(sent);
	});
	return new Promise((resolve) => {
		server.listen(port, "127.0.0.1", () => {
			resolve(server);
		});
	});
}
