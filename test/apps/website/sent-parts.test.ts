/** Forms that browsers send in parts: texts and files, byte for byte, and what is no such form. */
import assert from 'node:assert/strict';
import { describe, test } from 'vitest';
import type { Fields } from '../../../apps/website/layout/forms.ts';
import { FORM_PARTS_MAX, readParts, UnreadableParts } from '../../../apps/website/layout/sent-parts.ts';

async function sent(form: FormData): Promise<Fields> {
  const encoded = new Response(form);
  return readParts(encoded.headers.get('content-type') ?? '', new Uint8Array(await encoded.arrayBuffer()));
}

describe('A form in parts', () => {
  test('has the texts that were sent, with their line ends as line feeds and with a byte order mark', async () => {
    const form = new FormData();
    form.append('text', '\ufeffGrüße\r\nof two lines\n');
    form.append('box', 'one');
    form.append('box', 'two');
    const fields = await sent(form);
    assert.equal(fields.text('text'), '\ufeffGrüße\nof two lines\n');
    assert.deepEqual(fields.all('box'), ['one', 'two']);
    assert.deepEqual([fields.has('box'), fields.has('other'), fields.text('other')], [true, false, '']);
    assert.deepEqual(fields.files('text'), []);
  });

  test('has the bytes and the names of files, whatever these hold', async () => {
    const bytes = Uint8Array.from({ length: 300_000 }, (_, at) => at % 251);
    const names = ['a "quoted" name.txt', 'Grüße.txt', 'C:\\new', "it's; a=b", 'empty'];
    const form = new FormData();
    for (const name of names) form.append('files', new Blob(name === 'empty' ? [] : [bytes]), name);
    const files = (await sent(form)).files('files');
    assert.deepEqual(
      files.map(({ name }) => name),
      ['a "quoted" name.txt', 'Grüße.txt', 'new', "it's; a=b", 'empty'],
    );
    assert.ok(files.slice(0, 4).every((file) => Buffer.from(bytes).equals(file.bytes)));
    assert.equal(files[4]?.bytes.length, 0);
  });

  test(`has at most ${FORM_PARTS_MAX} parts`, async () => {
    const form = new FormData();
    for (let part = 0; part < FORM_PARTS_MAX; part += 1) form.append('part', String(part));
    assert.equal((await sent(form)).all('part').length, FORM_PARTS_MAX);
    form.append('part', 'one more');
    await assert.rejects(sent(form), UnreadableParts);
  });

  // The attack: a body that never closes a part, or has no parts, so that its reader waits for more.
  test('that is cut short, or has no parts, is refused', async () => {
    const type = 'multipart/form-data; boundary=x';
    const part = '--x\r\ncontent-disposition: form-data; name="text"\r\n\r\nhalf';
    for (const body of ['', 'nothing', '--x', part, `${part}\r\n--x`, '--x\r\n\r\n']) {
      await assert.rejects(readParts(type, Buffer.from(body)), UnreadableParts, JSON.stringify(body));
    }
    for (const none of ['multipart/form-data', 'text/plain', `multipart/form-data; boundary=${'y'.repeat(10_000)}`]) {
      await assert.rejects(readParts(none, Buffer.from(`${part}\r\n--x--\r\n`)), UnreadableParts, none);
    }
  });
});
