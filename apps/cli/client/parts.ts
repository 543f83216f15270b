/**
 * A body of `multipart/form-data` (RFC 7578): the JSON of a commit, then contents, which are read while they are sent.
 *
 * Invariants: no more of a content is in memory than a piece. The size of the body is known before it is sent.
 */
import { randomUUID } from 'node:crypto';

export interface Part {
  /** Without quotes, `\`, `%` and control characters. */
  readonly name: string;
  readonly sizeBytes: number;
  /** Yields that many bytes. It is called again where the request is sent again. */
  readonly bytes: () => AsyncIterable<Uint8Array>;
}

export interface StreamedBody {
  readonly contentType: string;
  readonly sizeBytes: number;
  readonly bytes: () => AsyncIterable<Uint8Array>;
}

export function bodyInParts(json: string, parts: readonly Part[]): StreamedBody {
  const boundary = randomUUID();
  const headOf = (name: string) =>
    Buffer.from(`\r\n--${boundary}\r\nContent-Disposition: form-data; name="${name}"; filename="content"\r\n\r\n`);
  const start = Buffer.from(
    `--${boundary}\r\nContent-Disposition: form-data; name="commit"\r\nContent-Type: application/json\r\n\r\n${json}`,
  );
  const end = Buffer.from(`\r\n--${boundary}--\r\n`);
  const sizes = parts.map(({ name, sizeBytes }) => headOf(name).length + sizeBytes);
  return {
    contentType: `multipart/form-data; boundary=${boundary}`,
    sizeBytes: sizes.reduce((sum, size) => sum + size, start.length + end.length),
    async *bytes() {
      yield start;
      for (const { name, bytes } of parts) {
        yield headOf(name);
        yield* bytes();
      }
      yield end;
    },
  };
}
