/** Shows the address of a new repository while its name is typed. Without it the hint says how the address begins. */

/** @type {HTMLInputElement | null} */
const field = document.querySelector('input#name');
const typed = document.getElementById('name-typed');

function show() {
  if (field !== null && typed !== null) typed.textContent = field.value.trim() || '…';
}

field?.addEventListener('input', show);
show();
