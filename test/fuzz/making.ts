/** What an input is made from: the accounts of the run, what they have, and what the service says of itself. */
import type { Plan } from '../../core/account/plans.ts';
import type { Dice } from '../support/seeded.ts';
import type { PackParts } from './packs.ts';

export const FILLED = 'code';
export const EMPTY = 'empty';
export const PUSHED = 'pushed';

/** The part of JSON Schema that the document uses. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly enum?: readonly (string | number)[];
  readonly const?: string | number | boolean;
  readonly examples?: readonly unknown[];
  readonly format?: string;
  readonly minimum?: number;
  readonly maximum?: number;
}

export interface Operation {
  readonly operationId: string;
  readonly method: string;
  /** With `{name}` for each parameter. */
  readonly path: string;
  readonly query: readonly { readonly name: string; readonly schema: Schema }[];
  readonly body: Schema | null;
  readonly schemas: Readonly<Record<string, Schema>>;
}

export interface SiteForm {
  readonly action: string;
  readonly fields: readonly (readonly [name: string, value: string])[];
}

export interface Site {
  /** The header of the session. */
  readonly cookie: string;
  readonly pages: readonly string[];
  readonly forms: readonly SiteForm[];
}

export interface FuzzAccount {
  readonly username: string;
  readonly plan: Plan;
  readonly id: string;
  readonly token: string;
  /** Ids of what the account has, in the order of its making, by the part of the path before `{id}`. */
  readonly ids: Readonly<Record<string, readonly string[]>>;
  readonly site: Site;
}

export interface Scene {
  readonly accounts: readonly FuzzAccount[];
  readonly operations: readonly Operation[];
  readonly packs: readonly PackParts[];
  /** Objects of the filled repository, by kind. */
  readonly objects: Readonly<Record<'commit' | 'tree' | 'blob' | 'tag', readonly string[]>>;
  readonly refs: readonly string[];
}

export interface Making {
  readonly scene: Scene;
  readonly account: FuzzAccount;
  readonly dice: Dice;
  /** Whether the request is changed; else it is as a client sends it. */
  readonly isMutated: boolean;
}
