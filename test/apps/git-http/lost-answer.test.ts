/** A push whose append got no answer, in each form in which a client may ask for its report. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import { EventStoreError } from '../../../core/ports/event-store.ts';
import { repositories } from '../../../core/repository/evolve.ts';
import { createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { startGit } from '../../support/git-fixture.ts';

const REF = 'refs/heads/main';

describe('A push whose append got no answer', () => {
  for (const [name, capabilities, expected] of [
    ['with a report and no side band', 'report-status', /^[0-9a-f]{4}unpack the push may have been committed.*\n/],
    ['with a report in the side band', 'report-status side-band-64k', /\u0002the push may have been committed/],
    ['without either', 'ofs-delta', /^[0-9a-f]{4}ERR the push may have been committed/],
  ] as const) {
    test(`is not said to have changed nothing to a client ${name}`, async (context) => {
      const fixture = await createApiFixture();
      cleanUp(context, () => fixture.close());
      const ada = await fixture.account('ada');
      const repository = await fixture.repository(ada, 'engine');
      const commit = fixture.objects.commit({ tree: fixture.objects.tree({}), seconds: 1 });
      await fixture.push(repository, { [REF]: commit });
      const { events, entities } = fixture.context;
      const append: typeof events.append = async (request) => {
        await events.append(request);
        throw new EventStoreError('append-outcome-unknown', 'secret words');
      };
      const git = await startGit(fixture, { events: { ...events, append } });
      cleanUp(context, () => git.close());
      const command = `${commit} ${'0'.repeat(40)} ${REF}\0${capabilities}`;
      const body = Buffer.from(`${(command.length + 4).toString(16).padStart(4, '0')}${command}0000`);
      const headers = { 'content-type': 'application/x-git-receive-pack-request' };
      const token = await fixture.token(ada);
      const answer = await git.request('POST', '/r/ada/engine.git/git-receive-pack', token, { body, headers });
      assert.equal(answer.status, 200, answer.text);
      assert.match(answer.text, expected);
      if (capabilities.includes('report')) {
        assert.match(answer.text, /ng refs\/heads\/main it may have been committed: fetch, then push again/);
      }
      assert.doesNotMatch(answer.text, /nothing was changed|secret/);
      assert.match(fixture.logged.join('\n'), /append-outcome-unknown/);
      const { state } = await entities.reload(repositories, repository.id);
      assert.ok(state.status === 'open' && state.refs.size === 0, 'it was committed');
    });
  }
});
