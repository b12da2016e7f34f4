import { execFileSync } from 'node:child_process'
import { cpSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout } from 'node:timers/promises'
import type { RunEvent } from '@tutti/protocol'
import { captureNow, createTestHost, runInside, type TestHost } from '@tutti/activities/test-host'
import { manyFiles, rewriteFiles } from './many-files.ts'
import type { Measurement } from './measurement.ts'
import { median } from './statistics.ts'

const sizes = [1000, 10_000, 50_000]
const changes = [0, 100, 10_000]
const earlierEvents = 100_000
const settleMs = 15_000
/** At most so many times the bare work: the start of a sandbox counts most where there is least to write. */
const limitOf = (files: number) => (files <= 1000 ? 2 : 1.5)

/**
 * From the loss of a sandbox to another one that is ready, proven: on one host without Temporal. The bare work is a clone of a local
 * mirror, its checkout, and a copy of the changed files. What either makes is removed when all is measured: after a removal file systems
 * are slower for a while, up to ten times as slow.
 */
export async function measureRecovery(runs: number): Promise<Measurement[]> {
  const measured: Measurement[] = []
  for (const files of sizes)
    for (const changed of changes) measured.push(await measureSize(files, changed, 0, runs))
  measured.push(await measureHistory(runs))
  return measured
}

export async function measureSize(
  files: number,
  changed: number,
  events: number,
  runs: number,
): Promise<Measurement> {
  const host = await prepared(files, changed, events)
  const clones = mkdtempSync(join(tmpdir(), 'tutti-bare-'))
  try {
    const ours: number[] = []
    const bare: number[] = []
    const mirror = join(clones, 'mirror')
    execFileSync('git', ['clone', '--quiet', '--mirror', '--no-local', host.host.source, mirror])
    for (let run = 0; run < runs; run += 1) {
      execFileSync('sync')
      bare.push(bareWork(mirror, host.changedFiles, join(clones, `${run}`)))
      ours.push(await host.recover())
    }
    return {
      name: `recovery, ${files} files, ${changed} changes`,
      unit: 'ms',
      ours: median(ours),
      baseline: median(bare),
      limit: limitOf(files),
      runs,
    }
  } finally {
    await host.remove()
    rmSync(clones, { recursive: true, force: true })
    await settled()
  }
}

/** After a removal a file system makes files several times as slowly for some seconds. */
async function settled(): Promise<void> {
  execFileSync('sync')
  await setTimeout(settleMs)
}

/** The same agent with a long past beside one without. */
async function measureHistory(runs: number): Promise<Measurement> {
  const [young, old] = [await prepared(10_000, 100, 0), await prepared(10_000, 100, earlierEvents)]
  try {
    const samples = { young: [] as number[], old: [] as number[] }
    for (let run = 0; run < runs; run += 1) {
      samples.young.push(await young.recover())
      samples.old.push(await old.recover())
    }
    return {
      name: `recovery with ${earlierEvents} earlier events beside none`,
      unit: 'ms',
      ours: median(samples.old),
      baseline: median(samples.young),
      limit: 1.1,
      runs,
    }
  } finally {
    await young.remove()
    await old.remove()
  }
}

/** An agent with a checkpoint and changes after it, whose sandbox is lost again and again. */
async function prepared(files: number, changed: number, events: number) {
  const host = await createTestHost({
    files: manyFiles(files),
    limits: { files: 200_000, diskBytes: 2 ** 30 },
  })
  let session = await host.provision(1)
  if (events > 0) {
    await writeHistory(session, events)
    await host.sealLog()
  }
  await runInside(session, "node -e '" + rewriteFiles(0, 1, 1) + "'")
  await captureNow(session)
  await host.checkpoint(session)
  if (changed > 0) await runInside(session, "node -e '" + rewriteFiles(0, changed, 2) + "'")
  await captureNow(session)
  const changedFiles = mkdtempSync(join(tmpdir(), 'tutti-changed-'))
  if (changed > 0) execFileSync('node', ['-e', rewriteFiles(0, changed, 2)], { cwd: changedFiles })
  return {
    host,
    changedFiles,
    async recover(): Promise<number> {
      await host.lose(session)
      execFileSync('sync')
      const from = performance.now()
      session = await host.provision(session.incarnation + 1)
      return performance.now() - from
    },
    async remove() {
      await host.remove()
      rmSync(changedFiles, { recursive: true, force: true })
    },
  }
}

type Session = Awaited<ReturnType<TestHost['provision']>>

/** What an agent says and does in a long life: turns of text and tool calls. */
async function writeHistory({ log }: Session, count: number): Promise<void> {
  const said = (at: number): RunEvent[] => [
    { type: 'text_delta', text: `word ${at} `.repeat(8) },
    { type: 'tool_call_started', callId: `call-${at}`, toolName: 'shell', args: { command: 'make' } },
    { type: 'shell_output_delta', callId: `call-${at}`, event: { case: 'stdout', data: 'x'.repeat(200) } },
    { type: 'tool_call_completed', callId: `call-${at}`, toolName: 'shell', outcome: 'ok' },
    { type: 'thinking_delta', text: `thought ${at} `.repeat(8) },
  ]
  const [rounds, perTurn] = [count / said(0).length, 100]
  for (let at = 0; at < rounds; at += perTurn) {
    const turn = { turnId: `turn-${at}`, turn: at, incarnation: 1 }
    await log.write(
      { type: 'turn_started', ...turn, agent: 'embedded:scripted' },
      ...Array.from({ length: perTurn }, (_, offset) => said(at + offset)).flat(),
      { type: 'turn_ended', ...turn, reason: 'completed' },
    )
  }
  await log.flush()
}

function bareWork(mirror: string, changedFiles: string, target: string): number {
  const from = performance.now()
  execFileSync('git', ['clone', '--quiet', mirror, target])
  cpSync(changedFiles, target, { recursive: true })
  return performance.now() - from
}
