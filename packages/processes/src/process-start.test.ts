import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { createInterface } from 'node:readline'
import { expect, test, vi } from 'vitest'
import { isRunning, isSameProcess, processStart } from './process-start.ts'

test('a living process keeps its start, and it fits in a file name', () => {
  const start = processStart(process.pid)!
  expect(start).toMatch(/^[A-Za-z0-9@_]+$/)
  expect(processStart(process.pid)).toBe(start)
  expect(isSameProcess(process.pid, start)).toBe(true)
  expect(isSameProcess(process.pid, `${start}1`)).toBe(false)
  expect(isRunning(process.pid)).toBe(true)
})

test("another user's process runs too", () => {
  expect(isRunning(1)).toBe(true)
  expect(processStart(1)).toBeDefined()
})

test('one that has ended is gone, also while nobody has collected it', async () => {
  // The shell that started it does not wait for it.
  const shell = spawn('sh', ['-c', 'sleep 100 & echo $!; read line; exec sleep 100'], { stdio: 'pipe' })
  try {
    const [line] = (await once(createInterface({ input: shell.stdout }), 'line')) as [string]
    const pid = Number(line)
    const start = processStart(pid)!
    expect(isSameProcess(pid, start)).toBe(true)
    shell.stdin.end('\n')
    process.kill(pid, 'SIGKILL')
    await vi.waitFor(() => expect(isRunning(pid)).toBe(false))
    expect(isSameProcess(pid, start)).toBe(false)
    expect(processStart(pid)).toBeUndefined()
  } finally {
    shell.kill('SIGKILL')
  }
})

test('what is no pid is no process', () => {
  for (const pid of [0, -1, 1.5, Number.NaN, 2 ** 31 - 1]) {
    expect(isRunning(pid), `${pid}`).toBe(false)
    expect(processStart(pid), `${pid}`).toBeUndefined()
  }
})
