/** GET info/refs: the advertisement that starts each service, from memory. */
import { sendBytes } from './answer.ts';
import type { GitRequest } from './git-request.ts';

export async function advertiseUploadPack(git: GitRequest): Promise<void> {
  const { answers, repository, version } = git;
  const bytes = version === 2 ? answers.capabilities : answers.uploadPack(repository, version);
  advertise(git, 'application/x-git-upload-pack-advertisement', bytes);
}

/** Protocol v2 has no pushes: clients that request it get v0 (gitprotocol-v2(5)). */
export async function advertiseReceivePack(git: GitRequest): Promise<void> {
  const bytes = git.answers.receivePack(git.repository, git.version === 1 ? 1 : 0);
  advertise(git, 'application/x-git-receive-pack-advertisement', bytes);
}

function advertise({ response, finished }: GitRequest, type: string, bytes: Uint8Array): void {
  finished.operation = 'info-refs';
  finished.sentBytes = bytes.length;
  sendBytes(response, type, bytes);
}
