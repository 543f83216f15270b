/**
 * The table of what the service does on each provider, in Markdown.
 *
 * Invariants: nothing works that depends on a fact without a source; such a cell is unknown, and names the facts.
 */
import { alignedTable } from '../clients/table.ts';
import type { Facts, Refused } from './rows.ts';

export const OPERATIONS = [
  'verify',
  'small push',
  'push of 9 MiB',
  'clone on an empty cache',
  'compaction',
  'delete',
] as const;

export type Cell =
  | { readonly is: 'works'; readonly without: readonly string[] }
  | { readonly is: 'unknown'; readonly facts: readonly (keyof Facts)[] }
  | { readonly is: 'refused'; readonly by: Refused }
  /** The bucket was refused, so that no repository can be in it. */
  | { readonly is: 'no bucket' }
  | { readonly is: 'failed'; readonly why: string };

export interface ProviderRow {
  readonly provider: string;
  /** In the order of the operations. */
  readonly cells: readonly Cell[];
}

export function renderProviders(rows: readonly ProviderRow[]): string {
  return alignedTable([
    ['provider', ...OPERATIONS],
    ...rows.map(({ provider, cells }) => [provider, ...cells.map(cellText)]),
  ]);
}

/** In the order in which a cell names them. */
const FACT_WORDS: { readonly [Name in keyof Facts]: string } = {
  address: 'addresses',
  objects: 'objects',
  parts: 'uploads in parts',
  condition: 'conditional puts',
  race: 'racing puts',
  completion: 'conditional completions',
  hashes: 'wrong hashes',
  checksums: 'checksums',
};

function cellText(cell: Cell): string {
  switch (cell.is) {
    case 'works':
      return cell.without.length === 0 ? 'works' : `works without ${cell.without.join(' and ')}`;
    case 'unknown': {
      const named = Object.entries(FACT_WORDS).filter(([name]) => cell.facts.some((fact) => fact === name));
      return `unknown: ${named.map(([, words]) => words).join(', ')}`;
    }
    case 'refused':
      return `refused with ${cell.by.status} ${cell.by.code}`;
    case 'no bucket':
      return 'no bucket';
    case 'failed':
      return 'FAILED';
  }
}
