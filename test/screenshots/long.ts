/** An account whose names and texts are as long as they may be, with words that no line can break. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import {
  REPOSITORY_DESCRIPTION_LENGTH_MAX,
  REPOSITORY_NAME_LENGTH_MAX,
  TOKEN_NAME_LENGTH_MAX,
  USERNAME_LENGTH_MAX,
} from '../../core/kernel/limits.ts';
import { ADA, History } from '../demo/history.ts';
import { api, createToken, git, gitUrl, type Strata } from '../support/strata.ts';

const cut = (text: string, length: number): string => text.repeat(Math.ceil(length / text.length)).slice(0, length);

export const LONG = {
  username: cut('longname', USERNAME_LENGTH_MAX),
  email: `${cut('a', 60)}@example.org`,
  password: 'correct horse battery',
  repository: cut('repository_', REPOSITORY_NAME_LENGTH_MAX),
  file: `${cut('folder_', 200)}/${cut('file_', 200)}.ts`,
} as const;

export async function fillLong(strata: Strata): Promise<void> {
  const { token, id } = await createToken(strata, LONG.username);
  const account = { id, username: LONG.username, token };
  const call = async (target: string, body: unknown): Promise<void> => {
    const answer = await api(strata, token, 'POST', target, body);
    if (answer.status >= 300) throw new Error(`${target}: ${answer.status} ${answer.text}`);
  };
  const description = cut('Donaudampfschifffahrtsgesellschaft ', REPOSITORY_DESCRIPTION_LENGTH_MAX);
  await call('/v1/repositories', { name: LONG.repository, description });
  await call('/v1/repositories', { name: 'empty' });
  // One that was deleted, whose name another one has.
  const taken = { name: cut('deleted-', REPOSITORY_NAME_LENGTH_MAX - 1).concat('x'), description };
  await call('/v1/repositories', taken);
  await api(strata, token, 'DELETE', `/v1/repos/${LONG.username}/${taken.name}`);
  await call('/v1/repositories', taken);
  await call('/v1/access-tokens', {
    ...{ name: cut('w', TOKEN_NAME_LENGTH_MAX), scope: 'ALL_REPO', grants: ['GIT_HTTP_READ', 'API_WEBHOOKS'] },
  });
  const history = new History();
  const text = (lines: number): string =>
    Array.from(
      { length: lines },
      (_, n) => `export const line${n} = '${cut('long ', n % 10 === 0 ? 2_000 : 60)}';\n`,
    ).join('');
  for (let n = 0; n < 60; n += 1) {
    history.commit({
      ...{ branch: 'main', author: { ...ADA, name: n % 5 === 0 ? cut('Nobody', 200) : ADA.name } },
      message: n % 3 === 0 ? cut('unbreakable', 300) : `Change number ${n}`,
      files: {
        [LONG.file]: text(20 + n * 5),
        [`${cut('f', 120)}-${n}.md`]: '# x\n',
        'README.md': `# ${cut('Title', 200)}\n`,
      },
    });
    if (n % 2 === 0) history.tag(`${cut('tag-', 100)}${n}`, 'main', cut('tagged ', 500));
    if (n % 2 === 1)
      history.commit({ branch: `${cut('topic-', 120)}${n}`, from: 'main', author: ADA, message: 'Topic', files: {} });
  }
  const folder = await mkdtemp(path.join(tmpdir(), 'strata-long-'));
  try {
    await git(folder, ['init', '--quiet', '--bare', '.']);
    await git(folder, ['fast-import', '--quiet', '--done'], history.toString());
    await git(folder, ['push', '--quiet', gitUrl(strata, account, LONG.repository), '--all']);
    await git(folder, ['push', '--quiet', gitUrl(strata, account, LONG.repository), '--tags']);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
