/**
 * What a command is: its name, arguments, options and texts, as data. The parser, the help, docs/cli.md and the
 * completion of shells all read this.
 *
 * Invariants: a definition imports no handler. The handler is loaded when its command runs, so that a start costs
 * the same however many commands there are.
 */
import type { Run } from '../session/context.ts';

export interface ArgumentDefinition {
  /** The name for the handler; the help has it in upper case. */
  readonly name: string;
  readonly description: string;
  readonly optional?: true;
  /** Any number of them, none included. Only the last argument of a command. */
  readonly several?: true;
  readonly choices?: readonly string[];
}

interface OptionBase {
  /** Without dashes: `repository-ids`. */
  readonly name: string;
  readonly description: string;
  /** What stands for the value in the help: `URL`. */
  readonly value?: string;
  readonly required?: true;
}

export type OptionDefinition = OptionBase &
  (
    | { readonly kind: 'flag' }
    | { readonly kind: 'text'; readonly choices?: readonly string[] }
    /** Separated by commas; given again, its values are added. Options of other kinds may be given once. */
    | {
        readonly kind: 'list';
        readonly choices?: readonly string[];
        /** Each time that it is given it names something: an empty variable of a shell must not leave a check out. */
        readonly filled?: boolean;
        /** Each time one value, commas included. */
        readonly whole?: boolean;
      }
    | {
        readonly kind: 'number';
        readonly min: number;
        readonly max: number;
        readonly otherwise?: number;
        readonly fractions?: true;
      }
  );

export interface CommandDefinition {
  /** `repo list` */
  readonly name: string;
  readonly summary: string;
  readonly arguments?: readonly ArgumentDefinition[];
  readonly options?: readonly OptionDefinition[];
  /** Paragraphs below the options. */
  readonly notes?: readonly string[];
  readonly examples?: readonly string[];
  readonly load: () => Promise<Run>;
}

export interface GroupDefinition {
  readonly name: string;
  readonly summary: string;
}
