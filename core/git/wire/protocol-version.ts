/**
 * The protocol version that a client requests: its `Git-Protocol` header, parsed as in gitprotocol-v2(5) and git's
 * server.
 */

/** Parses keys separated by colons. Returns the highest known `version=`, or 0: clients of version 0 send no header. */
export function parseGitProtocolHeader(text: string | undefined): 0 | 1 | 2 {
  let version: 0 | 1 | 2 = 0;
  for (const key of (text ?? '').split(':')) {
    if (key === 'version=2') version = 2;
    else if (key === 'version=1' && version === 0) version = 1;
  }
  return version;
}
