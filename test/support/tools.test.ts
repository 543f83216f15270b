/** Programs are found only where they are installed and executable. */
import assert from 'node:assert/strict';
import { chmod, mkdir, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { test } from 'vitest';
import { tempDir } from './temp-dir.ts';
import { findTool } from './tools.ts';

test("a tool is found on the search path first, then in the tools' own folder, if it can be run", async (context) => {
  const folder = await tempDir(context);
  const [first, own] = [path.join(folder, 'first'), path.join(folder, 'own')];
  const environment = { PATH: `:${path.join(folder, 'absent')}:${first}`, STRATA_TOOLS_DIR: own };
  for (const place of [own, first]) {
    await mkdir(place);
    const tool = path.join(place, 'temporal');
    const before = findTool('temporal', environment);
    await writeFile(tool, '#!/bin/sh\n');
    assert.equal(findTool('temporal', environment), before, 'not executable yet');
    await chmod(tool, 0o700);
    assert.equal(findTool('temporal', environment), tool);
  }
  assert.equal(findTool('temporal-test-server', environment), null);
});
