// refused: TS18047
const box = document.querySelector('.copy');
box.remove();
