/** A run with changed code: it starts a timer before its first look, which no recorded history contains. */
import { sleep } from '@temporalio/workflow';

export async function run(): Promise<void> {
  await sleep('1 second');
}
