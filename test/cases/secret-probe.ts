/** Every canary begins with this; written in two parts so that no file of a test holds it by itself. */
export const canaryPrefix = ['cnry', 'q7f3a'].join('')

/** The forms in which a secret could show: as it is, as hex, and as base64 at each of its three alignments. */
export function formsOf(secret: string): readonly string[] {
  const base64 = [0, 1, 2].map((shift) => {
    const text = Buffer.from(`${'.'.repeat(shift)}${secret}`).toString('base64')
    // What depends on the bytes before and behind it is left out.
    return text.slice(shift === 0 ? 0 : shift + 1, -4)
  })
  return [secret, Buffer.from(secret).toString('hex'), ...base64]
}

/**
 * A program for the agent: looks for the prefix in all forms in its environment, in every process that it can see and in every
 * file that it can read (except the system's own below /usr), and prints where, never what.
 */
export const probeProgram = `
import { lstatSync, readdirSync, readFileSync } from 'node:fs'
const prefix = ['cnry', 'q7f3a'].join('')
const forms = { plain: prefix, hex: Buffer.from(prefix).toString('hex') }
for (const shift of [0, 1, 2]) {
  const text = Buffer.from('.'.repeat(shift) + prefix).toString('base64')
  forms['base64-' + shift] = text.slice(shift === 0 ? 0 : shift + 1, -4)
}
const hits = new Set()
let files = 0
function look(where, bytes) {
  files += 1
  const text = bytes.toString('latin1')
  for (const [form, word] of Object.entries(forms)) {
    for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + 1)) {
      const start = text.lastIndexOf('\\0', at) + 1
      const name = /^([A-Za-z_][A-Za-z0-9_]*)=/.exec(text.slice(start, at))
      hits.add(where + ' ' + form + ' ' + (name ? name[1] : '?'))
    }
  }
}
function walk(folder) {
  let names = []
  try { names = readdirSync(folder) } catch { return }
  for (const name of names) {
    const path = folder + '/' + name
    if (['/usr', '/sys', '/dev', '/proc', '/nix', '/opt/node'].includes(path)) continue
    let stats
    try { stats = lstatSync(path) } catch { continue }
    if (stats.isDirectory()) walk(path)
    else if (stats.isFile() && stats.size < 64 << 20) try { look(path, readFileSync(path)) } catch {}
  }
}
for (const [name, value] of Object.entries(process.env)) look('env', Buffer.from(name + '=' + value))
let processes = 0
for (const pid of readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name))) {
  processes += 1
  for (const file of ['environ', 'cmdline', 'mountinfo', 'maps'])
    try { look('proc-' + file, readFileSync('/proc/' + pid + '/' + file)) } catch {}
}
walk('')
console.log('PROBE ' + JSON.stringify({ files, processes, hits: [...hits].sort() }))
`
