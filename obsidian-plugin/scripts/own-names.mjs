import { readFileSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import ts from "typescript";

/**
 * The member names that nobody outside the bundle can ever see, so that the build may shorten them as it shortens
 * the names of variables. A name is left alone when there is any doubt: when anything of the app, the browser or the
 * language has a member of that name, when it is in the daemon's JSON or in the settings, when it is a string
 * anywhere, or when an object that has it goes to where names are read at run time.
 */
const ROOT = fileURLToPath(new URL("..", import.meta.url));
const GOLDEN = fileURLToPath(new URL("../../tests/golden", import.meta.url));

/** Files in which every name is data that is read or written outside. */
const DATA = /\/src\/(protocol\/|settings\.ts|store\.ts)/;

/** @returns {string[]} the names, those that are used most first */
export function ownNames() {
	const read = ts.readConfigFile(`${ROOT}tsconfig.json`, ts.sys.readFile);
	const { options } = ts.parseJsonConfigFileContent(read.config, ts.sys, ROOT);
	const program = ts.createProgram([`${ROOT}src/main.ts`], options);
	const checker = program.getTypeChecker();
	const own = (file) => file.fileName.includes("/src/") && !file.fileName.includes("/node_modules/");

	const used = new Map();
	const kept = new Set(["constructor", "default", "prototype"]);

	/** Names of a type's members, and of theirs: whatever holds such an object can read them by name. */
	const seen = new Set();
	function keep(type) {
		if (!type || seen.has(type)) return;
		seen.add(type);
		if (type.isUnionOrIntersection()) type.types.forEach(keep);
		for (const member of type.getProperties?.() ?? []) {
			const at = member.valueDeclaration ?? member.declarations?.[0];
			if (at && !own(at.getSourceFile())) continue;
			kept.add(member.name);
			keep(checker.getTypeOfSymbol(member));
		}
		for (const one of checker.getTypeArguments?.(type) ?? []) keep(one);
		keep(type.getNumberIndexType?.());
		keep(type.getStringIndexType?.());
	}
	const open = (type) =>
		Boolean(type) &&
		((type.flags & (ts.TypeFlags.Any | ts.TypeFlags.Unknown)) !== 0 ||
			(type.flags & ts.TypeFlags.NonPrimitive) !== 0 ||
			type.getStringIndexType?.() !== undefined ||
			(type.isUnionOrIntersection() && type.types.some(open)));

	function visit(node, file) {
		if (ts.isStringLiteralLike(node) && !ts.isImportDeclaration(node.parent)) kept.add(node.text);
		if (ts.isModuleDeclaration(node)) node.forEachChild(function all(one) {
			if (ts.isIdentifier(one)) kept.add(one.text);
			one.forEachChild(all);
		});
		if (ts.isIdentifier(node)) {
			const { parent } = node;
			const member =
				(ts.isPropertyAccessExpression(parent) && parent.name === node) ||
				((ts.isPropertyAssignment(parent) || ts.isShorthandPropertyAssignment(parent) || ts.isMethodDeclaration(parent) ||
					ts.isPropertyDeclaration(parent) || ts.isAccessor(parent) || ts.isParameter(parent)) && parent.name === node) ||
				(ts.isBindingElement(parent) && (parent.propertyName ?? parent.name) === node);
			if (member) used.set(node.text, (used.get(node.text) ?? 0) + 1);
			if (DATA.test(file.fileName) && (ts.isPropertySignature(parent) || ts.isPropertyAssignment(parent) || ts.isShorthandPropertyAssignment(parent))) {
				kept.add(node.text);
			}
		}
		if (ts.isElementAccessExpression(node) && !ts.isStringLiteralLike(node.argumentExpression)) {
			const type = checker.getTypeAtLocation(node.expression);
			if (!checker.isArrayLikeType(type)) keep(type);
		}
		if (ts.isForInStatement(node)) keep(checker.getTypeAtLocation(node.expression));
		if (ts.isAsExpression(node) || ts.isTypeAssertionExpression?.(node)) {
			if (open(checker.getTypeAtLocation(node.expression))) keep(checker.getTypeAtLocation(node));
			if (open(checker.getTypeAtLocation(node))) keep(checker.getTypeAtLocation(node.expression));
		}
		if (ts.isTypePredicateNode(node) && node.type) keep(checker.getTypeFromTypeNode(node.type));
		if (ts.isExpression(node) && !ts.isFunctionLike(node) && !ts.findAncestor(node, ts.isSatisfiesExpression)) {
			const wanted = checker.getContextualType(node);
			if (open(wanted)) keep(checker.getTypeAtLocation(node));
		}
		node.forEachChild((child) => visit(child, file));
	}
	function foreign(node) {
		// parameters, types and type parameters have names of their own, and no object has a member of that name
		const name = ts.isParameter(node) || ts.isTypeParameterDeclaration(node) ? undefined : node.name;
		if (name && (ts.isIdentifier(name) || ts.isStringLiteralLike(name))) kept.add(name.text);
		if (ts.isStringLiteralLike(node)) kept.add(node.text);
		node.forEachChild(foreign);
	}
	for (const file of program.getSourceFiles()) {
		if (own(file)) visit(file, file);
		else foreign(file);
	}
	for (const name of readdirSync(GOLDEN, { recursive: true, encoding: "utf8" })) {
		if (!name.endsWith(".json") && !name.endsWith(".ndjson")) continue;
		for (const [word] of readFileSync(`${GOLDEN}/${name}`, "utf8").matchAll(/\w+/g)) kept.add(word);
	}
	return [...used].filter(([name]) => !kept.has(name) && name.length > 2).sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}
