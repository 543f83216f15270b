/** How much a client wants an answer in a content coding, such as gzip: RFC 9110, section 12.5.3. */

/** Returns a weight from 0 to 1; 0 where the header is absent or does not name the coding. */
export function acceptedCoding(acceptEncoding: string | undefined, coding: 'br' | 'gzip'): number {
  if (acceptEncoding === undefined) return 0;
  const weights = new Map(acceptEncoding.split(',').map((part) => weightOf(part.trim().toLowerCase())));
  return weights.get(coding) ?? weights.get('*') ?? 0;
}

function weightOf(part: string): readonly [coding: string, weight: number] {
  const [coding = '', ...parameters] = part.split(';').map((text) => text.trim());
  return [coding, weightIn(parameters)];
}

/** Returns the weight among the parameters of a range or a coding: from 0 to 1, and 1 if it has none. */
export function weightIn(parameters: readonly string[]): number {
  const weight = parameters.find((parameter) => parameter.startsWith('q='));
  const value = weight === undefined ? 1 : Number(weight.slice(2));
  return Number.isNaN(value) ? 0 : Math.min(1, Math.max(0, value));
}
