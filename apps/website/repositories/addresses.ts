/**
 * The addresses of a repository's pages, and the names of files in them.
 *
 * Invariants: a name is encoded byte by byte, since it need not be UTF-8, and decoded exactly once. A link to a ref
 * leads to that ref, whatever other refs there are.
 */
import { momentInUrl } from '../../../core/audit/moment.ts';
import { decodeUtf8Lossy } from '../../../core/git/utf8.ts';
import type { EventId } from '../../../core/kernel/ids.ts';
import { addressedRef } from '../../../core/use-cases/reading/ref-path.ts';
import type { FoundRepository } from '../../../core/use-cases/repositories/repositories.ts';
import { encodeName, encodePath } from '../../front-door/request-target.ts';

export type PlaceKind = 'tree' | 'blob' | 'blame' | 'raw' | 'commits' | FormKind;

/** Forms that write to the branch of the address. */
export type FormKind = 'edit' | 'create' | 'upload' | 'move' | 'remove';

type Names = readonly Uint8Array[];

/** The name of the moment in queries. */
export const MOMENT = 'at';

/** Returns the query that keeps the moment which a page shows; none for a page of today. */
export function momentQuery({ asOf }: Pick<FoundRepository, 'asOf'>): Readonly<Record<string, string>> {
  return asOf === undefined ? {} : { [MOMENT]: momentInUrl(asOf) };
}

/** Returns an address of this site with more in its query, and with the moment that the page shows. */
export function shownAddress(
  repository: Pick<FoundRepository, 'asOf'>,
  address: string,
  query: Readonly<Record<string, string>> = {},
): string {
  const [path = '', known = ''] = address.split('?', 2);
  const search = new URLSearchParams({
    ...Object.fromEntries(new URLSearchParams(known)),
    ...query,
    ...momentQuery(repository),
  });
  return search.size === 0 ? path : `${path}?${search.toString()}`;
}

/** The address of the repository as it is now, and the start of the addresses of its pages. */
export function repositoryAddress({ account, owned }: Pick<FoundRepository, 'account' | 'owned'>): string {
  return `/${account.username}/${owned.name}`;
}

/** The address of the page that purges a repository of the account. */
export function purgeAddress(repository: Parameters<typeof repositoryAddress>[0]): string {
  return `${repositoryAddress(repository)}/purge`;
}

/** Returns the moment that a page shows, as a person would write it; null for now. */
export function momentText({ asOf }: Pick<FoundRepository, 'asOf'>): string | null {
  if (asOf === undefined) return null;
  return 'at' in asOf ? asOf.at : asOf.event;
}

/** The address of what changed since the moment that a page shows; of the form that asks, on a page of today. */
export function changesAddress(repository: FoundRepository): string {
  const since = momentText(repository);
  const query = since === null ? '' : `?${new URLSearchParams({ since }).toString()}`;
  return `${repositoryAddress(repository)}/changes${query}`;
}

/** The address of what changed from the moment of one event to that of another. */
export function changesBetweenAddress(repository: FoundRepository, since: EventId, until: EventId): string {
  return `${repositoryAddress(repository)}/changes?${new URLSearchParams({ since, until }).toString()}`;
}

/** Returns the address of a path at a ref. */
export function placeAddress(repository: FoundRepository, kind: PlaceKind, ref: string, names: Names): string {
  const parts = [...addressedRef(repository, ref, names).split('/').map(encodeURIComponent), ...names.map(encodeName)];
  return shownAddress(repository, `${repositoryAddress(repository)}/${kind}/${parts.join('/')}`);
}

/** The address that leads to a path at another ref, or to what is nearest to it there. */
export function switchAddress(repository: FoundRepository, kind: PlaceKind, ref: string, names: Names): string {
  const query = { ref, page: kind, path: pathField(names) };
  return shownAddress(repository, `${repositoryAddress(repository)}/switch`, query);
}

type Query = Readonly<Record<string, string>>;

/** The address of the page that finds a file of a ref by its path. */
export function filesAddress(repository: FoundRepository, ref: string, more: Query = {}): string {
  return shownAddress(repository, `${repositoryAddress(repository)}/files`, { ref, ...more });
}

/** The address of the page that searches in the files of a ref. */
export function searchAddress(repository: FoundRepository, ref: string, more: Query = {}): string {
  return shownAddress(repository, `${repositoryAddress(repository)}/search`, { ref, ...more });
}

export function commitAddress(repository: FoundRepository, id: string): string {
  return shownAddress(repository, `${repositoryAddress(repository)}/commit/${id}`);
}

/** Returns the path that the names lead to. */
export function pathOfNames(names: Names): Uint8Array {
  return Buffer.concat(names.flatMap((name, index) => (index === 0 ? [name] : [SLASH, name])));
}

const SLASH = Buffer.from('/');

/** Returns a path as the field of a form holds it, which keeps names that are not UTF-8 and those with line ends. */
export function pathField(names: Names): string {
  return encodePath(pathOfNames(names));
}

/** Returns the names that `pathField` wrote; null for a text that it never writes. */
export function namesOfField(text: string): Names | null {
  const decoded = text.split('/').map(decodeName);
  return decoded.every((name) => name !== null) ? decoded : null;
}

/** Before the ref and path of an address: `/`, the owner, the repository and the kind of page. */
const SEGMENTS_BEFORE = 4;

/** Returns the decoded segments of `<ref>/<path>`; null for a target that no link leads to. */
export function segmentsOf(target: string): Names | null {
  const [path = ''] = target.split(/[?#]/, 1);
  const segments = path.split('/').slice(SEGMENTS_BEFORE);
  if (segments.at(-1) === '') segments.pop();
  const decoded = segments.map(decodeName);
  return decoded.every((name) => name !== null) ? decoded : null;
}

function decodeName(segment: string): Uint8Array | null {
  const bytes: number[] = [];
  for (let at = 0; at < segment.length; at += 1) {
    const unit = segment.charCodeAt(at);
    if (unit > 0xff) return null;
    if (segment[at] !== '%') {
      bytes.push(unit);
      continue;
    }
    const digits = segment.slice(at + 1, at + 3);
    if (!/^[0-9a-f]{2}$/i.test(digits)) return null;
    bytes.push(Number.parseInt(digits, 16));
    at += 2;
  }
  const name = decodeUtf8Lossy(Uint8Array.from(bytes));
  const isName = bytes.length > 0 && !bytes.includes(0) && name !== '.' && name !== '..';
  return isName ? Uint8Array.from(bytes) : null;
}
