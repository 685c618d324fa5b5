import type { Program } from "typescript";

export declare function ownNames(program: Program, src: string): { names: string[]; inherited: Set<string> };
