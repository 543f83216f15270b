// accepted
declare function readLayer(): Promise<string>;
declare function readRefs(): Promise<string>;
declare function keep(reading: Promise<string>): void;

export async function readTogether(): Promise<readonly string[]> {
  const reading = Promise.all([readLayer(), readRefs()]);
  return reading;
}

export async function readAfterAnother(): Promise<readonly string[]> {
  const layer = readLayer();
  layer.catch(() => undefined);
  const refs = await readRefs();
  return [await layer, refs];
}

export async function raceWithin(signal: AbortSignal, work: () => Promise<string>): Promise<string> {
  signal.throwIfAborted();
  const layer = readLayer();
  return Promise.race([layer, work()]);
}

export async function handOver(): Promise<string> {
  const layer = readLayer();
  keep(layer);
  await readRefs();
  return layer;
}

export async function useLost(lost: Promise<never>): Promise<void> {
  await readRefs();
  await Promise.race([lost, readLayer()]);
}
