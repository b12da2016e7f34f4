/**
 * Talk goes to stderr: stdout belongs to what was asked for.
 *
 * @param {string} line
 */
export function say(line) {
  process.stderr.write(`${line}\n`)
}
