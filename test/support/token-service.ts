/** A token service that answers as a test says, in the XML of Amazon's; it checks nothing. */
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, type ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { cleanUp, type Ending } from './cleanup.ts';

export interface Asked {
  readonly headers: IncomingHttpHeaders;
  readonly form: URLSearchParams;
}

export interface TestTokenService {
  readonly url: string;
  readonly asked: Asked[];
  /** Answers the next requests; the one that is set last stays. */
  answer: (asked: Asked, response: ServerResponse) => void;
}

export function grant(name: string, expiresAt: string) {
  return (_asked: Asked, response: ServerResponse): void => {
    response.writeHead(200, { 'content-type': 'text/xml' }).end(
      `<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><AssumeRoleWithWebIdentityResult>
<Credentials><AccessKeyId>ASIA${name}</AccessKeyId><SecretAccessKey>secret of ${name}</SecretAccessKey><SessionToken>session of ${name}</SessionToken><Expiration>${expiresAt}</Expiration></Credentials>
</AssumeRoleWithWebIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata></AssumeRoleWithWebIdentityResponse>`,
    );
  };
}

export function refuse(status: number, code: string, message = 'No') {
  return (_asked: Asked, response: ServerResponse): void => {
    response
      .writeHead(status, { 'content-type': 'text/xml' })
      .end(
        `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>${code}</Code><Message>${message}</Message></Error><RequestId>1</RequestId></ErrorResponse>`,
      );
  };
}

export async function startTokenService(ending: Ending): Promise<TestTokenService> {
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      const asked = { headers: request.headers, form: new URLSearchParams(body) };
      service.asked.push(asked);
      service.answer(asked, response);
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  if (address === null || typeof address === 'string') throw new TypeError('The token service has no port');
  const service: TestTokenService = { url: `http://127.0.0.1:${address.port}`, asked: [], answer: refuse(500, 'None') };
  cleanUp(ending, async () => {
    const closed = once(server, 'close');
    server.close();
    server.closeAllConnections();
    await closed;
  });
  return service;
}
