/**
 * The traffic of a month as stacked days: what was fetched below, what was pushed above it.
 *
 * Invariants: the chart holds numbers alone, and the table behind it says the same in words.
 */
import { daysInMonth } from '../../../core/kernel/calendar.ts';
import type { Timestamp } from '../../../core/kernel/ids.ts';
import type { DayTraffic } from '../../../core/ports/usage.ts';
import { type Html, html } from '../layout/html.ts';
import { sizeText } from '../layout/sizes.ts';

const WIDTH = 780;
const HEIGHT = 120;
const GAP = 6;
/** Something that is not nothing is at least this high. Internal: it is the shape of a bar. */
const HEIGHT_MIN = 2;

export function dailyChart(days: readonly DayTraffic[], now: Timestamp): Html {
  const count = daysInMonth(Number(now.slice(0, 4)), Number(now.slice(5, 7)));
  const step = WIDTH / count;
  const most = Math.max(1, ...days.map(({ transferBytes, ingressBytes }) => transferBytes + ingressBytes));
  const heightOf = (bytes: number): number =>
    bytes === 0 ? 0 : Math.max(HEIGHT_MIN, Math.round((bytes / most) * (HEIGHT - 10)));
  const bars = days.map(({ day, transferBytes, ingressBytes }) => {
    const x = Math.round((Number(day.slice(8, 10)) - 1) * step + GAP / 2);
    const width = Math.max(1, Math.round(step - GAP));
    const sent = heightOf(transferBytes);
    const received = heightOf(ingressBytes);
    return html`<rect class="sent" x="${x}" y="${HEIGHT - sent}" width="${width}" height="${sent}"></rect><rect class="received" x="${x}" y="${HEIGHT - sent - received}" width="${width}" height="${received}"></rect>`;
  });
  const labels = Array.from({ length: count }, (_, day) => html`<li>${day % 7 === 0 ? day + 1 : ''}</li>`);
  return html`<div class="chart"><svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="Bytes fetched and pushed each day; the table below says the same">${bars}</svg><ol class="days" aria-hidden="true">${labels}</ol></div>`;
}

export function dailyTable(days: readonly DayTraffic[]): Html {
  return html`<div class="scroll" tabindex="0" role="group" aria-label="Each day"><table><thead><tr><th>Day (UTC)</th><th class="number">Fetched</th><th class="number">Pushed</th></tr></thead><tbody>
${days.toReversed().map(
  ({ day, transferBytes, ingressBytes }) =>
    html`<tr><td>${day}</td><td class="number">${sizeText(transferBytes)}</td><td class="number">${sizeText(ingressBytes)}</td></tr>
`,
)}</tbody></table></div>`;
}
