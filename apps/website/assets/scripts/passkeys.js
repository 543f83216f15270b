/**
 * Asks the browser for a passkey and sends its answer with the form around it. The page shows the button only with
 * scripts, because a browser gives a passkey to nothing else.
 */

/** @typedef {typeof import('@simplewebauthn/browser')} WebAuthn */

/** The module webauthn.js sets it, and runs before this one. */
const { SimpleWebAuthnBrowser: webauthn } = /** @type {typeof globalThis & { SimpleWebAuthnBrowser: WebAuthn }} */ (
  globalThis
);

/**
 * @param {string | undefined} kind
 * @param {string} options the JSON that the service made for the library
 */
function ask(kind, options) {
  if (kind === 'create') return webauthn.startRegistration({ optionsJSON: parseCreation(options) });
  return webauthn.startAuthentication({ optionsJSON: parseRequest(options) });
}

/** @param {string} options */
function parseCreation(options) {
  return /** @type {import('@simplewebauthn/browser').PublicKeyCredentialCreationOptionsJSON} */ (JSON.parse(options));
}

/** @param {string} options */
function parseRequest(options) {
  return /** @type {import('@simplewebauthn/browser').PublicKeyCredentialRequestOptionsJSON} */ (JSON.parse(options));
}

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
    ask(passkey, options).then(
      (given) => {
        answer.value = JSON.stringify(given);
        form.submit();
      },
      (/** @type {unknown} */ error) => fail(reasonOf(error)),
    );
  });
}
