// accepted
export function addSpan(instant: string, spanMs: number): string {
  return new Date(Date.parse(instant) + spanMs).toISOString();
}
