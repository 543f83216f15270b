/** What became of refs, as a table. */
import type { Restoration } from '../client/operations.ts';
import type { Column } from '../terminal/table.ts';
import { shortId } from './object-id.ts';

/** `kind` may also say why there was no change. */
export type RefUpdate = Omit<Restoration['updates'][number], 'kind'> & { readonly kind: string };

export const UPDATES: readonly Column<RefUpdate>[] = [
  { title: 'REF', text: ({ ref }) => ref, rigid: true },
  { title: 'CHANGE', text: ({ kind }) => kind },
  { title: 'BEFORE', text: ({ before }, exact) => shortId(before, exact) },
  { title: 'AFTER', text: ({ after }, exact) => shortId(after, exact) },
];
