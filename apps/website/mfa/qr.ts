/** QR codes as inline SVG, for apps that read a text from the screen. */
import encodeQr from 'qr';
import { type Html, html } from '../layout/html.ts';

/** Modules of white around the code, which readers need. */
const BORDER = 4;
/** A code of 60 modules is about as wide as a phone's screen shows without scrolling. */
const MODULE_PIXELS = 4;

/** `label` says what the code holds, for people who cannot see it. */
export function qrCode(text: string, label: string): Html {
  const rows = encodeQr(text, 'raw', { ecc: 'medium', border: BORDER, scale: 1 });
  const size = rows.length;
  const pixels = size * MODULE_PIXELS;
  return html`<svg class="qr" role="img" aria-label="${label}" width="${pixels}" height="${pixels}" viewBox="0 0 ${size} ${size}" shape-rendering="crispEdges"><rect width="${size}" height="${size}" fill="#fff"/><path fill="#000" d="${rows.map(rowPath).join('')}"/></svg>`;
}

/** Returns the path of a row's dark modules, one rectangle for each run of them. */
function rowPath(row: readonly boolean[], y: number): string {
  let path = '';
  for (let x = 0; x < row.length; x += 1) {
    if (row[x] !== true) continue;
    const start = x;
    while (row[x + 1] === true) x += 1;
    path += `M${start} ${y}h${x - start + 1}v1H${start}z`;
  }
  return path;
}
