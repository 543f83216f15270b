/**
 * Names of refs: which names Strata accepts, which of them a push may still create, and their order.
 *
 * Invariants: every `RefName` passes git-check-ref-format(1) and is in a folder below refs/, as git's receive-pack
 * has it, but in no folder that changes what readers see. Every client can store it as a file of that name, and no
 * command can take it for an option. What is recorded is read by these rules, so they never become stricter: a new rule
 * for names that somebody creates belongs into `newNameRefusal`.
 */
import { type Brand, OBJECT_ID_PATTERN_ANY_FORMAT } from '../kernel/ids.ts';
import { REF_NAME_BYTES_MAX } from '../kernel/limits.ts';
import { compareUtf8, utf8Length } from './utf8.ts';

/** A component of a ref's name is a file name in a clone: 255 bytes, less five for `.lock`. */
export const REF_COMPONENT_BYTES_MAX = 250;

/** A ref's full name, e.g. `refs/heads/main`. */
export type RefName = Brand<string, 'RefName'>;
/** A branch's name without `refs/heads/`, e.g. `main`. */
export type BranchName = Brand<string, 'BranchName'>;

export type RefNameRefusalCode =
  /** It breaks a rule of git-check-ref-format(1). */
  | 'ref-name-malformed'
  /** It is not in a folder below refs/. */
  | 'ref-outside-namespaces'
  /** It is in refs/replace/: it would change the objects that every reader of the repository sees. */
  | 'ref-replace'
  /** It is in refs/strata/, which is kept for Strata's own refs. */
  | 'ref-reserved'
  | 'ref-component-starts-with-dash'
  /** A new branch or tag that readers could take for something else (`newNameRefusal`). */
  | 'name-ambiguous'
  | 'ref-name-too-long'
  | 'ref-component-too-long';

/** Why a name is refused; `detail` is one line for the user and does not repeat the name. */
export interface RefNameRefusal {
  readonly refused: RefNameRefusalCode;
  readonly detail: string;
}

const HEADS = 'refs/heads/';
/** A folder below refs/ and a name in it: `refs/stash` is refused, as by receive-pack. */
const NAMESPACED = /^refs\/[^/]+\/./;
/** In any case of letters: on some file systems a clone could not tell `refs/Replace/` from `refs/replace/`. */
const REPLACE = /^refs\/replace\//i;
const OWN = /^refs\/strata\//i;
/** What a text that names a ref may begin with to name no branch and no tag: core/use-cases/reading/resolve-ref.ts. */
const AMBIGUOUS = new RegExp(`^refs/(?:heads|tags)/(?:HEAD|refs|${OBJECT_ID_PATTERN_ANY_FORMAT})(?:/|$)`);
/** By code unit, 1 for space and the characters that revision expressions and refspecs use: gitrevisions(7). */
const FORBIDDEN = Uint8Array.from({ length: 128 }, (_, unit) =>
  Number(' ~^:?*[\\'.includes(String.fromCharCode(unit))),
);

/** Returns the text as a ref's full name, or why it is refused. */
export function parseRefName(text: string): RefName | RefNameRefusal {
  return refusalOf(text) ?? (text as RefName);
}

/** Returns the text as a branch's short name, or why it is refused. */
export function parseBranchName(text: string): BranchName | RefNameRefusal {
  return refusalOf(HEADS + text) ?? (text as BranchName);
}

/**
 * Returns why a ref of this name may not be created; null if it may. One that exists already may move and be deleted,
 * and stays readable.
 */
export function newNameRefusal(name: RefName): RefNameRefusal | null {
  if (!AMBIGUOUS.test(name)) return null;
  const detail = 'the name of a new branch or tag cannot begin with HEAD, refs or an object id: choose another name';
  return { refused: 'name-ambiguous', detail };
}

/**
 * Returns the short name of the branch that a text chooses as the default one, or why it is refused: the branch may
 * have to be created. Takes a short name, or `refs/heads/<name>`.
 */
export function parseDefaultBranch(text: string): BranchName | RefNameRefusal {
  const isFull = text.startsWith(HEADS);
  if (!isFull && text.startsWith('refs/')) {
    return { refused: 'name-ambiguous', detail: 'only refs/heads/ may stand before the name of a branch' };
  }
  const short = isFull ? text.slice(HEADS.length) : text;
  const name = parseRefName(HEADS + short);
  return typeof name === 'string' ? (newNameRefusal(name) ?? parseBranchName(short)) : name;
}

/**
 * Parses like `parseRefName`, for text from Strata's own records: throws TypeError, because any other text is
 * corruption.
 */
export function refName(text: string): RefName {
  const parsed = parseRefName(text);
  if (typeof parsed !== 'string') throw new TypeError(`Not a ref: ${JSON.stringify(text)}: ${parsed.detail}`);
  return parsed;
}

/** Returns the short name of a branch's ref; null for any other ref. */
export function branchOfRef(ref: RefName): BranchName | null {
  const parsed = ref.startsWith(HEADS) ? parseBranchName(ref.slice(HEADS.length)) : null;
  if (parsed !== null && typeof parsed !== 'string') throw new TypeError(`Not a ref: ${JSON.stringify(ref)}`);
  return parsed;
}

/** Compares names in the order in which git lists refs: by the bytes of their UTF-8. */
export function byRefOrder(a: string, b: string): number {
  return compareUtf8(a, b);
}

function refusalOf(text: string): RefNameRefusal | null {
  // Checks the length first, so that no other rule reads a long text.
  if (text.length > REF_NAME_BYTES_MAX || takesMoreBytes(text, REF_NAME_BYTES_MAX)) {
    return { refused: 'ref-name-too-long', detail: `the name takes more than ${REF_NAME_BYTES_MAX} bytes` };
  }
  const malformed = malformation(text);
  if (malformed !== null) return { refused: 'ref-name-malformed', detail: malformed };
  if (REPLACE.test(text)) return { refused: 'ref-replace', detail: 'refs/replace/ is not accepted here' };
  if (OWN.test(text)) return { refused: 'ref-reserved', detail: 'refs/strata/ is reserved' };
  if (!NAMESPACED.test(text)) {
    return { refused: 'ref-outside-namespaces', detail: 'only refs in a folder below refs/ are accepted here' };
  }
  return componentRefusal(text);
}

/** Returns the first rule of git-check-ref-format(1) that the name breaks; null if it breaks none. */
function malformation(text: string): string | null {
  if (!text.isWellFormed()) return 'the name is not valid Unicode';
  if (!text.includes('/')) return 'the name is not a full ref name such as refs/heads/main';
  for (let at = 0; at < text.length; at++) {
    const unit = text.charCodeAt(at);
    if (unit < 0x20 || unit === 0x7f) return 'the name holds a control character';
    if (FORBIDDEN[unit] === 1) return unit === 0x20 ? 'the name holds a space' : `the name holds a ${text.charAt(at)}`;
  }
  if (text.includes('..')) return 'the name holds two dots in a row';
  if (text.includes('@{')) return 'the name holds @{';
  if (text.startsWith('/') || text.endsWith('/') || text.includes('//')) return 'a component of the name is empty';
  if (text.startsWith('.') || text.includes('/.')) return 'a component of the name starts with a dot';
  if (text.endsWith('.')) return 'the name ends with a dot';
  if (text.endsWith('.lock') || text.includes('.lock/')) return 'a component of the name ends with .lock';
  return null;
}

function componentRefusal(text: string): RefNameRefusal | null {
  if (text.includes('/-')) {
    return { refused: 'ref-component-starts-with-dash', detail: 'a component of the name starts with a dash' };
  }
  if (!takesMoreBytes(text, REF_COMPONENT_BYTES_MAX)) return null;
  if (!text.split('/').some((component) => takesMoreBytes(component, REF_COMPONENT_BYTES_MAX))) return null;
  const detail = `a component of the name takes more than ${REF_COMPONENT_BYTES_MAX} bytes`;
  return { refused: 'ref-component-too-long', detail };
}

/** No UTF-16 code unit takes more than three bytes of UTF-8, so most names need no counting. */
function takesMoreBytes(text: string, bytes: number): boolean {
  return text.length * 3 > bytes && utf8Length(text) > bytes;
}
