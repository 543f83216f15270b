/**
 * Asks the browser for a passkey and sends its answer with the form around it. The page shows the button only with
 * scripts, because a browser gives a passkey to nothing else.
 */

/** @type {typeof import('@simplewebauthn/browser')} */
const webauthn = Reflect.get(globalThis, 'SimpleWebAuthnBrowser');

/** @type {Readonly<Record<string, string>>} */
const REASONS = {
  InvalidStateError: 'This device already holds one of your passkeys.',
  NotAllowedError: 'The browser got no passkey: it was cancelled, or it took too long. Try again.',
  SecurityError: 'The browser offers no passkeys at this address.',
};

/** @param {unknown} error */
function reasonOf(error) {
  const name = error instanceof Error ? error.name : '';
  return REASONS[name] ?? 'The browser could not use a passkey. Try again, or use another way.';
}

/** @type {NodeListOf<HTMLElement>} */
const ceremonies = document.querySelectorAll('[data-passkey]');
for (const ceremony of ceremonies) {
  const form = ceremony.closest('form');
  const answer = ceremony.querySelector('input');
  const button = ceremony.querySelector('button');
  /** @type {HTMLElement | null} */
  const failure = ceremony.querySelector('[role="alert"]');
  const { passkey, options } = ceremony.dataset;
  if (form === null || answer === null || button === null || failure === null || options === undefined) continue;
  const fail = (/** @type {string} */ text) => {
    failure.textContent = text;
    failure.hidden = false;
    button.disabled = false;
  };
  if (!webauthn.browserSupportsWebAuthn()) {
    fail('This browser offers no passkeys.');
    continue;
  }
  button.hidden = false;
  form.addEventListener('submit', (event) => {
    event.preventDefault();
    failure.hidden = true;
    button.disabled = true;
    const optionsJSON = JSON.parse(options);
    const asked =
      passkey === 'create'
        ? webauthn.startRegistration({ optionsJSON })
        : webauthn.startAuthentication({ optionsJSON });
    asked.then(
      (given) => {
        answer.value = JSON.stringify(given);
        form.submit();
      },
      (error) => fail(reasonOf(error)),
    );
  });
}
