/**
 * Measures whether a server's memory stays flat: one push of 1 GiB and 20 concurrent clones, by real git clients.
 *
 * Invariants: the pushed bytes do not compress, so 1 GiB crosses the wire; the clones start together with the push.
 */
import { createCipheriv } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import path from 'node:path';
import { Readable } from 'node:stream';
import { git } from '../git.ts';
import { sampleMemory, startMemorySampler } from '../memory.ts';
import type { MemoryResult } from '../results.ts';
import type { Side } from '../sides/side.ts';
import { clientOptions, urlOf } from './recording.ts';
import type { BenchContext } from './scenario.ts';

const MIB = 1024 * 1024;
const BLOB_BYTES = 4 * MIB;
const BLOBS = 256;
const CLONES = 20;
const SAMPLE_INTERVAL_MS = 100;

/**
 * Returns a bare repository whose one commit holds 256 files of 4 MiB of noise; makes it when it does not exist yet.
 */
export async function prepareLargeFolder(context: BenchContext): Promise<string> {
  const folder = path.join(context.workFolder, 'large.git');
  if (existsSync(folder)) return folder;
  await git(['init', '--quiet', '--bare', '--initial-branch=main', folder]);
  // Noise does not deflate, so trying would only take time.
  const options = ['-c', 'core.compression=0', '-c', 'fastimport.unpackLimit=0'];
  await git([...options, 'fast-import', '--quiet', '--done'], { cwd: folder, input: Readable.from(largeHistory()) });
  return folder;
}

export async function measureMemory(context: BenchContext, side: Side, largeFolder: string): Promise<MemoryResult> {
  const folder = await mkdtemp(path.join(context.workFolder, 'memory-'));
  const small = await side.createRepository('memory-clones', context.project);
  const large = await side.createRepository('memory-push', null);
  const options = clientOptions(side);
  await side.group.settle();
  const idle = sampleMemory(side.group);
  const sampler = startMemorySampler(side.group, SAMPLE_INTERVAL_MS);
  const start = performance.now();
  try {
    const push = git([...options, 'push', '--quiet', urlOf(side.port, large), 'refs/heads/*:refs/heads/*'], {
      cwd: largeFolder,
    });
    const clones = Array.from({ length: CLONES }, (_, index) =>
      git([...options, 'clone', '--quiet', '--bare', urlOf(side.port, small), `copy-${index}`], { cwd: folder }),
    );
    await Promise.all([push, ...clones]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
  const seconds = (performance.now() - start) / 1000;
  const peak = sampler.stop();
  await side.group.settle();
  const after = sampleMemory(side.group);
  await side.removeRepository(small);
  await side.removeRepository(large);
  return {
    side: side.label,
    pushBytes: BLOBS * BLOB_BYTES,
    clones: CLONES,
    seconds,
    idleBytes: idle.serverBytes,
    peakBytes: peak.serverBytes,
    peakAnonymousBytes: peak.serverAnonymousBytes,
    databasePeakBytes: peak.databaseBytes,
    peakProgramBytes: peak.programBytes,
    afterBytes: after.serverBytes,
  };
}

/** A fast-import stream; the key stream of a cipher is noise that is the same in every run. */
function* largeHistory(): Generator<string | Buffer> {
  const cipher = createCipheriv('aes-128-ctr', Buffer.alloc(16, 1), Buffer.alloc(16, 2));
  const zeros = Buffer.alloc(BLOB_BYTES);
  yield 'commit refs/heads/main\ncommitter Bench <bench@example.org> 1760000000 +0000\ndata 5\nLarge\n';
  for (let index = 0; index < BLOBS; index += 1) {
    yield `M 100644 inline noise-${index}\ndata ${BLOB_BYTES}\n`;
    yield cipher.update(zeros);
    yield '\n';
  }
  yield '\ndone\n';
}
