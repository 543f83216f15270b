/** What every page does with scripts on: buttons that copy, and times that stay current. Pages work without it. */

for (const box of document.querySelectorAll('.copy')) {
  const code = box.querySelector('code');
  const button = box.querySelector('button');
  // Browsers offer the clipboard only on HTTPS and on localhost.
  if (code === null || button === null || !isSecureContext) continue;
  button.hidden = false;
  const { textContent: text, ariaLabel: label } = button;
  button.addEventListener('click', () => {
    navigator.clipboard.writeText(code.textContent).then(
      () => {
        button.textContent = 'Copied';
        button.ariaLabel = 'Copied';
        setTimeout(() => {
          button.textContent = text;
          button.ariaLabel = label;
        }, 2000);
      },
      () => getSelection()?.selectAllChildren(code),
    );
  });
}

/** @type {readonly (readonly [string, number])[]} */
const UNITS = [
  ['year', 365 * 86400],
  ['month', 30 * 86400],
  ['day', 86400],
  ['hour', 3600],
  ['minute', 60],
];

/**
 * The words of layout/times.ts.
 *
 * @param {number} seconds
 */
function relative(seconds) {
  const distance = Math.abs(seconds);
  if (distance < 5) return 'just now';
  const [name, length] = UNITS.find(([, unit]) => distance >= unit) ?? ['second', 1];
  const count = Math.floor(distance / length);
  const text = `${count} ${name}${count === 1 ? '' : 's'}`;
  return seconds < 0 ? `in ${text}` : `${text} ago`;
}

/** @type {NodeListOf<HTMLTimeElement>} */
const times = document.querySelectorAll('time[data-relative]');
if (times.length > 0) {
  setInterval(() => {
    for (const time of times) {
      time.textContent = relative(Math.round((Date.now() - Date.parse(time.dateTime)) / 1000));
    }
  }, 60000);
}
