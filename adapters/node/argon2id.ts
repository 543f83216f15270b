/**
 * argon2id (RFC 9106) by node:crypto, or by @node-rs/argon2 where Node has none: Node has it since 24.7, and
 * somebody may start the server with an older one, which the launcher warns of.
 *
 * Invariants: the choice depends on whether Node has the function, not on its version; both make the same bytes of
 * the same input, off the main thread.
 */
import * as crypto from 'node:crypto';

export interface Argon2idInput {
  readonly message: Buffer;
  readonly salt: Buffer;
  readonly memoryKiB: number;
  readonly passes: number;
  readonly tagLengthBytes: number;
}

/** One lane; version 0x13. */
export type Argon2id = (input: Argon2idInput) => Promise<Buffer>;

/**
 * Newer @types/node declare it like this. The installed ones are of the oldest supported Node, so nothing newer
 * compiles.
 */
type NodeArgon2 = (
  algorithm: 'argon2id',
  parameters: {
    readonly message: Buffer;
    readonly nonce: Buffer;
    readonly parallelism: number;
    readonly tagLength: number;
    readonly memory: number;
    readonly passes: number;
  },
  callback: (error: Error | null, tag: Buffer) => void,
) => void;

/** Looks the function up at run time: the import of a name that Node lacks would end the process at its start. */
export function findArgon2id(from: object = crypto): Argon2id {
  const argon2 = readArgon2(from);
  return argon2 === null ? argon2idByPackage : (input) => argon2idByNode(argon2, input);
}

function readArgon2(from: object): NodeArgon2 | null {
  const found = 'argon2' in from ? from.argon2 : undefined;
  return typeof found === 'function' ? (found as NodeArgon2) : null;
}

function argon2idByNode(argon2: NodeArgon2, input: Argon2idInput): Promise<Buffer> {
  const { message, salt: nonce, memoryKiB: memory, passes, tagLengthBytes: tagLength } = input;
  return new Promise((resolve, reject) => {
    argon2('argon2id', { message, nonce, parallelism: 1, tagLength, memory, passes }, (error, tag) => {
      if (error === null) resolve(tag);
      else reject(error);
    });
  });
}

async function argon2idByPackage(input: Argon2idInput): Promise<Buffer> {
  // Loaded only where it is needed, because it is a native binary.
  const { hashRaw } = await import('@node-rs/argon2');
  // By default it makes argon2id of version 0x13.
  return hashRaw(input.message, {
    salt: input.salt,
    memoryCost: input.memoryKiB,
    timeCost: input.passes,
    outputLen: input.tagLengthBytes,
    parallelism: 1,
  });
}
