/** Answers about refs that are kept in memory. */
import assert from 'node:assert/strict';
import { randomBytes, randomUUID } from 'node:crypto';
import { test } from 'vitest';
import { createRefAnswers, type RefAnswer } from '../../../apps/git-http/advertise.ts';
import { type EventId, uuid } from '../../../core/kernel/ids.ts';
import { versionOf } from '../../../core/use-cases/reading/repository-view.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { startGitReading } from '../../support/git-reading.ts';

function textOf({ whole, pieces }: RefAnswer): string {
  const text = Buffer.concat([...pieces()]).toString();
  assert.ok(whole === null || Buffer.from(whole).toString() === text);
  return text;
}

test('An answer is not sent for another event of the same revision, which a failover that lost the log can leave', async (context) => {
  const reading = await startGitReading();
  cleanUp(context, () => reading.close());
  const lost = await reading.push({ 'refs/heads/main': reading.git.commit({ lost: randomBytes(9) }) });
  const later = await reading.push({ 'refs/heads/main': reading.git.commit({ kept: randomBytes(9) }) });
  // The state after another push at the revision of the lost one.
  const lastEventId = uuid<EventId>(randomUUID());
  const kept = { ...later, entity: { ...later.entity, revision: lost.entity.revision, lastEventId } };
  const answers = createRefAnswers('strata/test');
  const tips = [lost, kept].map((repository) => textOf(answers.uploadPack(repository, 0)));
  assert.notEqual(tips[0], tips[1]);
  assert.equal(textOf(answers.uploadPack(lost, 0)), tips[0]);
  assert.notEqual(versionOf(lost), versionOf(kept), 'pages and entity tags');
});
