/** What is recorded of a request whose client left: nothing failed here, so no operator is to be called. */
import assert from 'node:assert/strict';
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, test } from 'vitest';
import { createApiFixture } from '../../support/api-fixture.ts';
import { cleanUp } from '../../support/cleanup.ts';
import { startGit } from '../../support/git-fixture.ts';
import { basicAuthorization, commandList, commit, pack } from '../../support/git-wire.ts';
import { eventually } from '../../support/processes.ts';

describe('A Git request whose client leaves', () => {
  // The attack: anybody with a token sends the first bytes of pushes and leaves, and the service's metrics show
  // internal errors by the thousand, among which no real one would be seen.
  for (const [how, cutOff, leave] of [
    ['inside the list of commands', 100, 'destroy'],
    ['inside the pack', 10, 'destroy'],
    ['with a connection that it half closes', 10, 'end'],
  ] as const) {
    test(`${how} is not recorded as an internal error`, async (context) => {
      const fixture = await createApiFixture({
        objects: ({ database }) => ({
          ...database,
          receive: async ({ pack: sent }) => {
            for await (const _ of sent);
            throw new TypeError('The pack never ends');
          },
        }),
      });
      cleanUp(context, () => fixture.close());
      const ada = await fixture.account('ada');
      await fixture.repository(ada, 'engine');
      const { secret } = await fixture.token(ada);
      const server = await startGit(fixture);
      cleanUp(context, () => server.close());
      const next = commit('never whole');
      const body = Buffer.concat([commandList([{ ref: 'refs/heads/main', after: next.id }]), pack([next])]);
      const head = [
        'POST /r/ada/engine.git/git-receive-pack HTTP/1.1',
        ...['Host: localhost', `Authorization: ${basicAuthorization({ username: 'ada', token: secret })}`],
        ...['Content-Type: application/x-git-receive-pack-request', `Content-Length: ${body.length}`],
      ];
      const socket = connect(server.port, '127.0.0.1');
      socket.on('error', () => undefined);
      await once(socket, 'connect');
      const sent = cutOff === 100 ? body.subarray(0, cutOff) : body.subarray(0, -cutOff);
      socket.write(Buffer.concat([Buffer.from(`${head.join('\r\n')}\r\n\r\n`), sent]));
      await new Promise((resolve) => setTimeout(resolve, 50));
      if (leave === 'destroy') socket.destroy();
      else socket.end();
      await eventually('the request has ended', () => server.finished.length > 0);
      const [finished] = server.finished;
      assert.deepEqual([finished?.operation, finished?.status], ['push', 400]);
      assert.doesNotMatch(fixture.logged.join('\n'), /A request failed/);
      socket.destroy();
    });
  }
});
