// Starts what a page has: its stream, the grid, logs, actions, and the keys of all pages.
import { start as startActions } from "./actions.js";
import { start as startGrid } from "./grid.js";
import { start as startKeys } from "./keys.js";
import { start as startLogs } from "./logs.js";
import { start as startSearch } from "./search.js";
import { start as startSaving } from "./saving.js";
import { start as startStream } from "./stream.js";

startKeys();
startSearch();
startSaving();
startGrid();
startLogs();
startActions();
startStream();
