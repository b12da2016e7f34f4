import { type ChildProcess, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { isRunning } from '@tutti/processes'
import { afterEach, beforeEach, expect, test } from 'vitest'

const module = pathToFileURL(join(import.meta.dirname, 'run-pinned.mjs')).href
/** Writes each signal that it gets as one line; ends by itself after the second SIGINT, or at once by SIGTERM. */
const program = `
import { appendFileSync, writeFileSync } from 'node:fs'
const [folder] = process.argv.slice(2)
let interrupts: number = 0
process.on('SIGINT', () => {
  appendFileSync(folder + '/signals', 'SIGINT\\n')
  if (++interrupts === 2) process.exit(7)
})
process.on('SIGWINCH', () => appendFileSync(folder + '/signals', 'SIGWINCH\\n'))
process.on('SIGTERM', () => {
  appendFileSync(folder + '/signals', 'SIGTERM\\n')
  process.exit(8)
})
setInterval(() => {}, 1000)
writeFileSync(folder + '/pid', String(process.pid))
`

let folder: string
let launcher: ChildProcess
let ended: Promise<number | null>

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tutti pinned '))
  await writeFile(
    join(folder, 'launch.mjs'),
    `import { runPinned } from '${module}'\nprocess.exitCode = await runPinned(process.argv.slice(2))\n`,
  )
})

afterEach(async () => {
  if (launcher.exitCode === null && launcher.signalCode === null) launcher.kill('SIGTERM')
  await ended
  await rm(folder, { recursive: true, force: true })
})

test('arguments, streams and the exit code go through', async () => {
  await launch(
    `process.stdin.on('data', (bytes: Buffer) => process.stdout.write(process.argv[2] + bytes)).on('end', () => process.exit(5))`,
    'a b ',
  )
  let output = ''
  launcher.stdout?.on('data', (bytes) => (output += bytes))
  launcher.stdin?.end('said')
  expect(await ended).toBe(5)
  expect(output).toBe('a b said')
})

test('a program that dies by a signal gives 128 and its number', async () => {
  await launch(`process.kill(process.pid, 'SIGKILL')`)
  expect(await ended).toBe(137)
})

test('one press of Ctrl-C that comes twice counts once, a second press counts', async () => {
  await launch(program, folder)
  await readWhenThere('pid')
  launcher.kill('SIGINT')
  launcher.kill('SIGINT')
  expect(await readWhenThere('signals')).toBe('SIGINT\n')
  // Past the time within which two signals are one press.
  await new Promise((resolve) => setTimeout(resolve, 400))
  expect(await readWhenThere('signals')).toBe('SIGINT\n')
  launcher.kill('SIGINT')
  expect(await ended).toBe(7)
  expect(await readWhenThere('signals')).toBe('SIGINT\nSIGINT\n')
})

test('a launcher that is killed outright takes the program with it', async () => {
  await launch(program, folder)
  const pid = Number(await readWhenThere('pid'))
  launcher.kill('SIGKILL')
  await expect.poll(() => isRunning(pid), { timeout: 10_000 }).toBe(false)
  expect(await readWhenThere('signals')).toBe('SIGTERM\n')
})

test.each([
  { npm_command: 'exec', says: 'SIGTERM\n' },
  { npm_command: undefined, says: 'SIGWINCH\n' },
])('when the shell that started it ends: $says (npm_command $npm_command)', async ({ npm_command, says }) => {
  await launchBehindShell(program, npm_command)
  const pid = Number(await readWhenThere('pid'))
  const parent = Number(await readWhenThere('launcher'))
  launcher.kill('SIGKILL')
  // Without npm it goes on, also after the time within which it would have been told.
  if (npm_command === undefined) {
    await new Promise((resolve) => setTimeout(resolve, 1500))
    process.kill(parent, 'SIGWINCH')
  }
  expect(await readWhenThere('signals')).toBe(says)
  if (npm_command === undefined) process.kill(parent, 'SIGTERM')
  await expect.poll(() => isRunning(pid) || isRunning(parent), { timeout: 10_000 }).toBe(false)
})

/** The shell is {@link launcher}; the file `launcher` names the process below it. */
async function launchBehindShell(source: string, npm_command: string | undefined): Promise<void> {
  const path = join(folder, 'program.mts')
  await writeFile(path, source)
  const line = '"$0" "$@" & echo $! > "$3/launcher"; wait'
  const child = spawn('sh', ['-c', line, process.execPath, join(folder, 'launch.mjs'), path, folder], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, npm_command },
  })
  launcher = child
  ended = new Promise((resolve) => child.on('close', resolve))
}

async function launch(source: string, ...args: string[]): Promise<void> {
  const path = join(folder, 'program.mts')
  await writeFile(path, source)
  const child = spawn(process.execPath, [join(folder, 'launch.mjs'), path, ...args], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  launcher = child
  ended = new Promise((resolve) => child.on('close', resolve))
}

async function readWhenThere(name: string): Promise<string> {
  for (;;) {
    const text = await readFile(join(folder, name), 'utf8').catch(() => '')
    if (text !== '') return text
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
