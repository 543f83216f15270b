/**
 * A small repository made by one `git fast-import`: branches, lightweight, annotated and nested tags, notes, names
 * beyond ASCII, and one file that changes with each commit.
 */
import { join } from 'node:path';
import type { AdvertisedRef, AdvertisedRun } from '../../core/git/wire/ref-parts.ts';
import { objectId } from '../../core/kernel/ids.ts';
import { git } from './git-process.ts';

const SAMPLE_COMMITS = 12;

/** Makes `<folder>/<name>` and returns its path. */
export function createSampleRepository(folder: string, name = 'sample.git'): string {
  const path = join(folder, name);
  git(['init', '--quiet', '--bare', '--initial-branch=main', path]);
  for (const setting of ['uploadpack.allowAnySHA1InWant', 'uploadpack.allowFilter', 'http.receivepack']) {
    git(['config', setting, 'true'], { cwd: path });
  }
  git(['config', 'receive.advertisePushOptions', 'true'], { cwd: path });
  const script: string[] = [];
  for (let commit = 1; commit <= SAMPLE_COMMITS; commit++) {
    script.push(
      'commit refs/heads/main',
      `mark :${commit}`,
      `committer A <a@example.org> ${1_700_000_000 + commit} +0000`,
    );
    script.push(data(`Commit ${commit}`), `M 100644 inline file`, data(`content ${commit}`));
    script.push(`M 100644 inline folder/file-${commit}`, data(`file ${commit}`));
  }
  for (const ref of [
    'heads/dev',
    'heads/feature/é',
    'heads/\u{1f600}',
    'heads/\uffee',
    'tags/light',
    'notes/commits',
  ]) {
    script.push(`reset refs/${ref}`, 'from :3', '');
  }
  const tagger = 'tagger A <a@example.org> 1700000000 +0000';
  script.push('tag v1', 'mark :90', 'from :5', tagger, data('one'), 'tag v1-signed', 'from :90', tagger, data('two'));
  git(['fast-import', '--quiet'], { cwd: path, input: `${script.join('\n')}\n` });
  return path;
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}`;
}

/** Returns the refs of a repository in the type that the server's code uses. */
export function refsOf(path: string): AdvertisedRef[] {
  const format = '%(refname) %(objectname) %(*objectname)';
  const lines = git(['for-each-ref', `--format=${format}`], { cwd: path })
    .toString()
    .trimEnd()
    .split('\n');
  return lines
    .filter((line) => line !== '')
    .map((line) => {
      const [name = '', id = '', peeled = ''] = line.split(' ');
      // for-each-ref peels a tag by one step only.
      const end =
        peeled === ''
          ? null
          : git(['rev-parse', `${peeled}^{}`], { cwd: path })
              .toString()
              .trim();
      return { name, id: objectId(id), peeled: end === null ? null : objectId(end) };
    });
}

/** The same refs in short runs. */
export function inRuns(refs: readonly AdvertisedRef[]): readonly AdvertisedRun[] {
  const size = 2;
  return Array.from({ length: Math.ceil(refs.length / size) }, (_, run) => refs.slice(run * size, (run + 1) * size));
}
