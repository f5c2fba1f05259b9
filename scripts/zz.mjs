import { fillDemo } from './screenshots-data.mjs';
console.log(await fillDemo(process.argv[2], process.argv[3], {fresh: process.argv[4]==='fresh', warmupS: 60}));
