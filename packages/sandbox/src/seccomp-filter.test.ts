import { spawnSync } from 'node:child_process'
import { afterEach, describe, expect, test } from 'vitest'
import { inspectedCalls, missingCalls, refusedCalls } from './seccomp-calls.ts'
import { seccompFilter } from './seccomp-filter.ts'
import { createTestSubject, type TestSubject } from './test-subject.ts'

const noFamily = 0x00050000 + 97
const refused = 0x00050000 + 1
const missing = 0x00050000 + 38
const allowed = 0x7fff0000

/** What the kernel's machine for classic BPF would answer. */
function answerOf(program: Buffer, arch: number, call: number, firstArgument = 0): number {
  const data: Record<number, number> = { 0: call, 4: arch, 16: firstArgument }
  let value = 0
  for (let at = 0; ; at += 1) {
    const code = program.readUInt16LE(at * 8)
    const operand = program.readUInt32LE(at * 8 + 4)
    if (code === 0x06) return operand
    if (code === 0x20) value = data[operand]!
    else {
      const holds =
        code === 0x15 ? value === operand : code === 0x35 ? value >= operand : (value & operand) !== 0
      at += program.readUInt8(at * 8 + (holds ? 2 : 3))
    }
  }
}

describe.each([
  ['x64', 0xc000003e, 0],
  ['arm64', 0xc00000b7, 63],
] as const)('the filter of %s', (arch, audit, readCall) => {
  const program = seccompFilter(arch)!
  const ask = (call: number, argument?: number) => answerOf(program, audit, call, argument)

  test('answers every listed call, and lets the others pass', () => {
    expect(ask(readCall)).toBe(allowed)
    for (const [name, numbers] of Object.entries(refusedCalls)) {
      const number = (numbers as { x64?: number; arm64?: number })[arch]
      if (number !== undefined) expect(ask(number), name).toBe(refused)
    }
    expect(ask(missingCalls['clone3']![arch]!)).toBe(missing)
  })

  test('looks at the families of sockets and at the namespaces of new processes', () => {
    for (const call of [inspectedCalls.socket[arch], inspectedCalls.socketpair[arch]]) {
      for (const family of [1, 2, 10, 16]) expect(ask(call, family)).toBe(allowed)
      for (const family of [0, 17, 38, 40, 44]) expect(ask(call, family)).toBe(noFamily)
    }
    expect(ask(inspectedCalls.clone[arch], 0x003d0f00)).toBe(allowed)
    for (const flag of [0x00020000, 0x02000000, 0x10000000, 0x40000000])
      expect(ask(inspectedCalls.clone[arch], flag)).toBe(refused)
  })

  test('knows no calls of other architectures', () => {
    expect(answerOf(program, 0x40000003, readCall)).toBe(missing)
    expect(ask(readCall + 0x40000000)).toBe(arch === 'x64' ? missing : allowed)
  })
})

test('there is none where calls are not known by number', () => {
  expect(seccompFilter('riscv64')).toBeUndefined()
})

/** Needs no C compiler: each Debian has perl. Prints each call's error number, or what came of it. */
const perlProbe = `
  for my $family (1, 2, 10, 16, 17, 38, 40) {
    print "family $family ", (socket(my $s, $family, $family == 16 ? 3 : 1, 0) ? "open" : $!+0), "\\n";
  }
  for my $call (@ARGV) { $! = 0; print "call $call ", (syscall($call + 0, -1, 0, 0, 0, 0) == -1 ? $!+0 : "done"), "\\n" }`
const hasPerl = spawnSync('perl', ['-v']).status === 0
const arch = process.arch === 'arm64' ? 'arm64' : 'x64'
const filtered = process.arch === arch

describe('in a sandbox', () => {
  const subjects: TestSubject[] = []
  const run = async (line: string) => {
    const subject = createTestSubject()
    subjects.push(subject)
    const running = await subject.run(line, { limits: { pids: 128, memoryBytes: 1 << 30 } })
    const { code } = await running.exit
    return { code, output: running.output() }
  }
  afterEach(async () => {
    for (const subject of subjects.splice(0)) await subject.dispose()
  })

  // Install perl, or run on x86_64 or aarch64, to have these.
  test.skipIf(!hasPerl || !filtered)('no socket leads to the host, and the listed calls fail', async () => {
    const calls = Object.values(refusedCalls as Record<string, { x64?: number; arm64?: number }>)
      .map((numbers) => numbers[arch])
      .filter((number) => number !== undefined)
    const { output } = await run(
      `perl -e '${perlProbe}' ${calls.join(' ')} 2>&1; ls /proc/self/fd | tr '\\n' ' '`,
    )
    const lines = output.trim().split('\n')
    expect(lines.slice(0, 7)).toEqual([
      'family 1 open',
      'family 2 open',
      'family 10 open',
      'family 16 open',
      'family 17 97',
      'family 38 97',
      'family 40 97',
    ])
    expect(lines.slice(7, -1)).toEqual(calls.map((number) => `call ${number} 1`))
    // The descriptors of the launch do not reach the programs inside.
    expect(lines.at(-1)).toMatch(/^0 1 2 (?!4 |5 )/)
  })

  test('what coding agents use works: Node with threads and children, git, pipes, a server on loopback', async () => {
    const script = `
      const { Worker } = require("worker_threads"), { execFileSync } = require("child_process"), http = require("http"), fs = require("fs")
      const worker = "require('worker_threads').parentPort.postMessage(1)"
      fs.promises.readFile("/etc/passwd").then(() => new Worker(worker, { eval: true }).once("message", () => {
        const server = http.createServer((_, response) => response.end("served")).listen(0, "127.0.0.1", async () => {
          const response = await fetch("http://127.0.0.1:" + server.address().port)
          console.log(await response.text(), execFileSync("echo", ["child"], { encoding: "utf8" }).trim())
          process.exit()
        })
      }))`
    const { output, code } = await run(
      `set -e; cat > script.cjs <<'EOF'\n${script}\nEOF\n git init -q repo; cp script.cjs repo; cd repo; echo x > x; git add x; git -c user.name=a -c user.email=a@b commit -qm x; git log --format=%s; ` +
        `/opt/node/bin/node script.cjs; (setsid true; nice true; timeout 5 true) | cat; echo end`,
    )
    expect(output).toBe('x\nserved child\nend\n')
    expect(code).toBe(0)
  })
})
