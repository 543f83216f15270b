/**
 * Which protocol a client speaks: its `Git-Protocol` header, as gitprotocol-v2(5) and git's own server read it.
 */

/** Keys separated by colons; the highest `version=` we know wins; without one it is 0, which sends no header. */
export function parseGitProtocolHeader(text: string | undefined): 0 | 1 | 2 {
  let version: 0 | 1 | 2 = 0;
  for (const key of (text ?? '').split(':')) {
    if (key === 'version=2') version = 2;
    else if (key === 'version=1' && version === 0) version = 1;
  }
  return version;
}
