import ts from "typescript";

/**
 * Which names of members only we know, so that a release may have shorter ones. A name counts for the whole source: it
 * is ours when everything that bears it is declared in `src/`, and nothing outside can ask for it. Outside is the app
 * and the browser (what a type of theirs has a member for), and whatever reads or makes objects by names that are not
 * in the source: JSON, storage, an index, `unknown`. So the types of values are followed from expression to expression,
 * and all names of a type that gets there, or comes from there, stay. What cannot be followed stops the build.
 */

const { TypeFlags, SymbolFlags } = ts;
const NAMED = SymbolFlags.Class | SymbolFlags.Interface | SymbolFlags.Function | SymbolFlags.Method;
const PRIMITIVE =
	TypeFlags.StringLike | TypeFlags.NumberLike | TypeFlags.BooleanLike | TypeFlags.BigIntLike |
	TypeFlags.ESSymbolLike | TypeFlags.Void | TypeFlags.Undefined | TypeFlags.Null | TypeFlags.Never;

/**
 * @param {ts.Program} program
 * @param {string} src the folder of the source, with a slash
 * @returns {{ names: string[], inherited: Set<string> }} our names, and those of them that a class has which extends one of the app's
 */
export function ownNames(program, src) {
	const checker = program.getTypeChecker();
	const names = new Set();
	const inherited = new Set();
	const known = new Set();

	const ours = (node) => node.getSourceFile().fileName.startsWith(src) && !(node.flags & ts.NodeFlags.Ambient);
	const isOurs = (symbol) => symbol?.declarations?.length > 0 && symbol.declarations.every(ours);
	/** Whether it is a named type, or a method, of the app's or the browser's. */
	const foreign = ({ symbol }) => symbol !== undefined && (symbol.flags & NAMED) !== 0 && !isOurs(symbol);

	/** The single types of a union or an intersection, without those that have no members of interest. */
	const parts = (type) => (type.isUnionOrIntersection() ? type.types.flatMap(parts) : type.flags & PRIMITIVE ? [] : [type]);
	/** The same, and for a type that is not settled yet also what it can be at most. */
	const settled = (type) =>
		parts(type).flatMap((one) => {
			const most = one.flags & TypeFlags.Instantiable ? checker.getBaseConstraintOfType(one) : undefined;
			return most && most !== one && !anything(most) ? [one, ...settled(most)] : [one];
		});
	const isList = (type) => checker.isArrayType(type) || checker.isTupleType(type);
	const of = (type) => (type.objectFlags & ts.ObjectFlags.Reference ? checker.getTypeArguments(type) : []);
	const signatures = (type) => [...type.getCallSignatures(), ...type.getConstructSignatures()];
	const typesOf = (signature) => signature.getParameters().map((one) => checker.getTypeOfSymbol(one));
	const anything = (type) =>
		(type.flags & (TypeFlags.Any | TypeFlags.Unknown | TypeFlags.NonPrimitive)) !== 0 ||
		(!isList(type) && checker.getIndexInfosOfType(type).length > 0);
	const isEmpty = (type) =>
		(type.flags & TypeFlags.Object) !== 0 && type.getProperties().length === 0 && signatures(type).length === 0;

	/** Types whose members may be read or made by names that are not in the source. */
	const open = new Set();
	/** By type: what else is used as such. */
	const given = new Map();

	function reach(type) {
		for (const one of settled(type)) {
			if (open.has(one)) continue;
			open.add(one);
			of(one).forEach(reach);
			// of a type of the app's nobody knows more than its own members
			if (foreign(one)) continue;
			given.get(one)?.forEach(reach);
			for (const member of one.getProperties()) {
				known.add(member.name);
				reach(checker.getTypeOfSymbol(member));
			}
			for (const signature of signatures(one)) [signature.getReturnType(), ...typesOf(signature)].forEach(reach);
		}
	}

	const followed = new Set();

	/** A value of the one type is used as one of the other. */
	function follow(from, to) {
		for (const value of settled(from)) for (const wanted of parts(to)) {
			const pair = `${value.id} ${wanted.id}`;
			if (value === wanted || followed.has(pair)) continue;
			followed.add(pair);
			if (anything(wanted) || isEmpty(wanted)) reach(value);
			else if (anything(value)) reach(wanted);
			else between(value, wanted);
		}
	}

	function between(value, wanted) {
		given.set(wanted, (given.get(wanted) ?? new Set()).add(value));
		if (open.has(wanted) && !foreign(wanted)) reach(value);
		const same = value.target !== undefined && value.target === wanted.target;
		of(value).forEach((one, index) => {
			for (const other of same ? of(wanted).slice(index, index + 1) : of(wanted)) follow(one, other);
		});
		if (same || (foreign(value) && foreign(wanted))) return;
		for (const member of wanted.getProperties()) {
			const own = value.getProperty(member.name);
			if (!own) continue;
			if (!isOurs(member) || !isOurs(own)) known.add(member.name);
			follow(checker.getTypeOfSymbol(own), checker.getTypeOfSymbol(member));
		}
		for (const one of signatures(value)) for (const other of signatures(wanted)) {
			follow(one.getReturnType(), other.getReturnType());
			const asked = typesOf(one);
			typesOf(other).forEach((type, index) => asked[index] && follow(type, asked[index]));
		}
	}

	const typeOf = (node) => checker.getTypeAtLocation(node);
	const unsure = (node, what) => {
		throw new Error(`${node.getSourceFile().fileName}: ${what}, of which names cannot be followed: ${node.getText()}`);
	};
	const use = (name, symbol) => {
		const member = symbol && symbol.flags & (SymbolFlags.Property | SymbolFlags.Method | SymbolFlags.Accessor);
		if (!member || !isOurs(symbol)) known.add(name);
	};

	function visit(node) {
		const name = node.name && (ts.isIdentifier(node.name) || ts.isStringLiteral(node.name)) ? node.name.text : "";
		if (ts.isClassElement(node) || ts.isTypeElement(node) || ts.isObjectLiteralElement(node) || ts.isParameterPropertyDeclaration(node, node.parent)) {
			if (name) names.add(name);
		}
		if (ts.isPropertyAccessExpression(node)) use(name, checker.getSymbolAtLocation(node.name));
		else if (ts.isBindingElement(node) && ts.isObjectBindingPattern(node.parent) && !node.dotDotDotToken) {
			const read = (node.propertyName ?? node.name).text;
			use(read, typeOf(node.parent).getProperty(read));
		} else if (ts.isImportSpecifier(node)) use((node.propertyName ?? node.name).text);
		else if (ts.isElementAccessExpression(node)) {
			const index = node.argumentExpression;
			if (ts.isStringLiteralLike(index)) known.add(index.text);
			else for (const one of settled(typeOf(node.expression))) if (!isList(one)) reach(one);
		} else if (ts.isBinaryExpression(node) && node.operatorToken.kind === ts.SyntaxKind.InKeyword) {
			if (ts.isStringLiteral(node.left)) known.add(node.left.text);
			else reach(typeOf(node.right));
		} else if (ts.isComputedPropertyName(node) && ts.isObjectLiteralElement(node.parent)) {
			const type = typeOf(node.expression);
			for (const one of type.isUnion() ? type.types : [type]) {
				if (one.isStringLiteral()) known.add(one.value);
				else reach(checker.getContextualType(node.parent.parent) ?? typeOf(node.parent.parent));
			}
		} else if (ts.isForInStatement(node)) unsure(node, "a `for … in`");
		else if (ts.isBinaryExpression(node) && ts.isObjectLiteralExpression(node.left)) unsure(node, "an assignment to a pattern");
		else if (ts.isClassLike(node)) visitClass(node);
		else if (ts.isAsExpression(node) && !ts.isConstTypeReference(node.type)) {
			follow(typeOf(node.expression), typeOf(node.type));
			follow(typeOf(node.type), typeOf(node.expression));
		} else if (ts.isCallOrNewExpression(node)) visitCall(node);
		else if (ts.isTypeParameterDeclaration(node) && node.constraint) follow(typeOf(node), typeOf(node.constraint));
		else if (ts.isTypePredicateNode(node) && node.type) follow(typeOf(node.parent.parameters[0]), typeOf(node.type));
		if (ts.isExpression(node)) {
			// a pattern wants nothing: what it takes is looked at where it is bound
			const pattern = ts.isVariableDeclaration(node.parent) && !ts.isIdentifier(node.parent.name);
			const wanted = pattern ? undefined : checker.getContextualType(node);
			if (wanted) follow(typeOf(node), wanted);
		}
		node.forEachChild(visit);
	}

	function visitClass(node) {
		const bases = (node.heritageClauses ?? []).flatMap((clause) => [...clause.types]);
		for (const base of bases) follow(typeOf(node), typeOf(base));
		if (!bases.some((base) => typeOf(base).getProperties().some((member) => !isOurs(member)))) return;
		for (const member of typeOf(node).getProperties()) inherited.add(member.name);
	}

	/** Within a function of ours with type parameters its arguments are followed as those. */
	function visitCall(node) {
		const declaration = checker.getResolvedSignature(node)?.declaration;
		if (!declaration?.typeParameters || !ours(declaration)) return;
		node.arguments?.forEach((argument, index) => {
			const parameter = declaration.parameters[Math.min(index, declaration.parameters.length - 1)];
			if (parameter) follow(typeOf(argument), typeOf(parameter));
		});
	}

	for (const file of program.getSourceFiles()) if (file.fileName.startsWith(src) && !file.fileName.endsWith("/en.ts")) visit(file);
	return { names: [...names].filter((name) => !known.has(name)), inherited };
}
