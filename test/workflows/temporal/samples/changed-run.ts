/** The run with other code: it asks for a timer before it looks, which no history tells of. */
import { sleep } from '@temporalio/workflow';

export async function run(): Promise<void> {
  await sleep('1 second');
}
