/** GET info/refs: the advertisement that starts each service, from memory. */
import { sendBytes } from './answer.ts';
import type { GitRequest } from './git-request.ts';
import { sendRefs } from './ref-answer.ts';

const UPLOAD_PACK_TYPE = 'application/x-git-upload-pack-advertisement';
const RECEIVE_PACK_TYPE = 'application/x-git-receive-pack-advertisement';

export async function advertiseUploadPack(git: GitRequest): Promise<void> {
  const { answers, repository, version, finished } = git;
  finished.operation = 'info-refs';
  if (version !== 2) {
    await sendRefs(git, UPLOAD_PACK_TYPE, answers.uploadPack(repository, version));
    return;
  }
  finished.sentBytes = answers.capabilities.length;
  sendBytes(git, UPLOAD_PACK_TYPE, answers.capabilities);
}

/** Protocol v2 has no pushes: clients that request it get v0 (gitprotocol-v2(5)). */
export async function advertiseReceivePack(git: GitRequest): Promise<void> {
  const { answers, repository, version, finished } = git;
  finished.operation = 'info-refs';
  await sendRefs(git, RECEIVE_PACK_TYPE, answers.receivePack(repository, version === 1 ? 1 : 0));
}
