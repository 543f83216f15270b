// accepted
document.querySelector('.copy')?.remove();
