/** Annotated tags as Git stores them (git-mktag(1)). Texts are UTF-8, and stand as they are given. */
import { signatureLine } from './commit-bytes.ts';
import type { ObjectInfo, Signature } from './objects.ts';
import { encodeUtf8 } from './utf8.ts';

export interface NewTagObject {
  readonly target: Pick<ObjectInfo, 'id' | 'type'>;
  /** The short name of its ref. */
  readonly name: string;
  readonly tagger: Signature;
  readonly message: string;
}

/** The texts are bounded as those of `commitBytes` are. */
export function tagBytes({ target, name, tagger, message }: NewTagObject): Uint8Array {
  const lines = [`object ${target.id}`, `type ${target.type}`, `tag ${name}`, `tagger ${signatureLine(tagger)}`];
  return encodeUtf8(`${lines.join('\n')}\n\n${message}`);
}
