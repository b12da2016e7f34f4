import type { SandboxPolicy } from '@tutti/core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { isMarked, markSandbox } from './sandbox-mark.ts'
import type { Exec, ExecExit, SandboxProvider, SandboxSpec } from './port.ts'

const never = new AbortController().signal

export interface ContractSubject {
  readonly provider: SandboxProvider
  readonly policy: SandboxPolicy
  /** A folder of the host with one file, `given.txt`, that says `given`. */
  readonly folder: string
  dispose(): Promise<void>
}

/** What every sandbox provider must do. An adapter's test is one call: `testSandboxContract('docker', () => …)`. */
export function testSandboxContract(name: string, createSubject: () => Promise<ContractSubject>): void {
  describe(`sandbox provider: ${name}`, () => {
    let subject: ContractSubject
    let count = 0
    const specOf = (change: Partial<SandboxSpec> = {}): SandboxSpec => {
      count += 1
      return {
        key: `contract/${count}`,
        owner: 'one',
        policy: subject.policy,
        env: {},
        readOnly: [],
        ...change,
      }
    }
    const shell = async (spec: SandboxSpec, line: string, input = '') => {
      const sandbox = await subject.provider.create(spec, never)
      const exec = await sandbox.exec({ argv: ['/bin/sh', '-c', line] }, never)
      if (input !== '') await exec.write(Buffer.from(input))
      await exec.closeStdin()
      return { sandbox, ...(await outcomeOf(exec)) }
    }
    beforeAll(async () => {
      subject = await createSubject()
    })
    afterAll(async () => {
      for (const ref of await subject.provider.list(undefined, never))
        await subject.provider.destroy(ref, never)
      await subject.dispose()
    })

    test('runs a program with its input, both outputs and its exit code', async () => {
      const run = await shell(specOf(), 'cat; echo problem >&2; exit 3', 'input')
      expect(run).toMatchObject({ stdout: 'input', stderr: 'problem\n', exit: { code: 3 } })
    })

    test('gives a program the environment that was named for it and nothing of its own', async () => {
      process.env['TUTTI_CONTRACT_CANARY'] = 'canary'
      const spec = specOf({ env: { GIVEN: 'a "quoted" $value' } })
      const run = await shell(spec, 'env; echo "home=$HOME"').finally(
        () => delete process.env['TUTTI_CONTRACT_CANARY'],
      )
      expect(run.stdout).toContain('GIVEN=a "quoted" $value\n')
      expect(run.stdout).not.toContain('canary')
      expect(run.stdout).toContain(`home=${run.sandbox.home}\n`)
    })

    test('starts in an empty workspace, with a private home and a Node', async () => {
      const sandbox = await subject.provider.create(specOf(), never)
      const line = `pwd; ls -A; "${sandbox.nodePath}" -p 6*7; touch "$HOME/x" "$TMPDIR/y" z; ls`
      const exec = await sandbox.exec({ argv: ['/bin/sh', '-c', line] }, never)
      expect((await outcomeOf(exec)).stdout).toBe(`${sandbox.workdir}\n42\nz\n`)
    })

    test('shows what was mounted, where it says, and read-only', async () => {
      const spec = specOf({ readOnly: [{ host: subject.folder, inside: '/given' }] })
      const sandbox = await subject.provider.create(spec, never)
      const path = sandbox.pathOf('/given/given.txt')
      const exec = await sandbox.exec({ argv: ['cat', path] }, never)
      expect(await outcomeOf(exec)).toMatchObject({ stdout: 'given', exit: { code: 0 } })
    })

    test('refuses to mount what is not there', async () => {
      const spec = specOf({ policy: { ...subject.policy, mounts: [`${subject.folder}/missing`] } })
      await expect(subject.provider.create(spec, never)).rejects.toMatchObject({ code: 'invalid_argument' })
      expect((await subject.provider.list(undefined, never)).map((ref) => ref.key)).not.toContain(spec.key)
    })

    test('puts files before a program runs, and reads them back without following links', async () => {
      const sandbox = await subject.provider.create(specOf(), never)
      const path = `${sandbox.workdir}/a/b.sh`
      await sandbox.put([{ path, bytes: Buffer.from('echo hi'), mode: 0o755 }], never)
      const exec = await sandbox.exec(
        { argv: ['/bin/sh', '-c', `${'"$PWD"'}/a/b.sh; ln -s /etc/passwd link`] },
        never,
      )
      expect((await outcomeOf(exec)).stdout).toBe('hi\n')
      expect(Buffer.from(await sandbox.get(path, 100, never)).toString()).toBe('echo hi')
      expect(Buffer.from(await sandbox.get(path, 4, never)).toString()).toBe('echo')
      for (const missing of ['nothing', 'link', 'a']) {
        await expect(sandbox.get(`${sandbox.workdir}/${missing}`, 100, never)).rejects.toMatchObject({
          code: 'not_found',
        })
      }
      await expect(sandbox.get(`${sandbox.workdir}/../x`, 100, never)).rejects.toMatchObject({
        code: 'invalid_argument',
      })
    })

    test('is one sandbox for one key, also when many ask at once', async () => {
      const spec = specOf()
      const made = await Promise.all(Array.from({ length: 5 }, () => subject.provider.create(spec, never)))
      expect(new Set(made).size).toBe(1)
      expect(await subject.provider.attach(made[0]!.ref, never)).toBe(made[0])
    })

    test('is told from another one by its mark, which is on its own disk', async () => {
      const spec = specOf()
      const sandbox = await subject.provider.create(spec, never)
      expect(await isMarked(sandbox, never)).toBe(false)
      await markSandbox(sandbox, never)
      const exec = await sandbox.exec({ argv: ['/bin/sh', '-c', 'echo up; cat'] }, never)
      const attached = await subject.provider.attach(sandbox.ref, never)
      expect(await isMarked(attached!, never)).toBe(true)
      const other = await subject.provider.create(specOf(), never)
      expect(await isMarked({ ...other, ref: sandbox.ref }, never)).toBe(false)
      await exec.closeStdin()
      await exec.exit
    })

    test('lists by owner, and destroys for good, again and again', async () => {
      const spec = specOf({ owner: 'two' })
      const sandbox = await subject.provider.create(spec, never)
      const exec = await sandbox.exec(
        { argv: ['/bin/sh', '-c', 'trap "" TERM; sleep 1000 & echo up; wait'] },
        never,
      )
      const outcome = outcomeOf(exec)
      expect(await sandbox.alive(never)).toBe('running')
      expect(await subject.provider.list('two', never)).toEqual([sandbox.ref])
      await Promise.all([
        subject.provider.destroy(sandbox.ref, never),
        subject.provider.destroy(sandbox.ref, never),
      ])
      await subject.provider.destroy(sandbox.ref, never)
      expect((await outcome).exit.code).toBeNull()
      expect(await sandbox.alive(never)).toBe('gone')
      expect(await subject.provider.list('two', never)).toEqual([])
      expect(await subject.provider.attach(sandbox.ref, never)).toBeNull()
      const again = await shell(spec, 'ls -A')
      expect(again).toMatchObject({ stdout: '', exit: { code: 0 } })
    })

    test('loses no output of a program that ends before anyone reads', async () => {
      const sandbox = await subject.provider.create(specOf(), never)
      const exec = await sandbox.exec({ argv: ['echo', 'quick'] }, never)
      await exec.exit
      await new Promise((resolve) => setTimeout(resolve, 50))
      expect((await outcomeOf(exec)).stdout).toBe('quick\n')
    })

    test('ends a program by signal', async () => {
      const sandbox = await subject.provider.create(specOf(), never)
      const exec = await sandbox.exec({ argv: ['sleep', '1000'] }, never)
      await exec.kill('SIGKILL')
      expect((await exec.exit).code).toBeNull()
    })

    test('says cancelled when the caller gave up before', async () => {
      await expect(subject.provider.create(specOf(), AbortSignal.abort())).rejects.toMatchObject({
        code: 'cancelled',
      })
    })
  })
}

async function outcomeOf(exec: Exec): Promise<{ stdout: string; stderr: string; exit: ExecExit }> {
  const [stdout, stderr, exit] = await Promise.all([textOf(exec.stdout), textOf(exec.stderr), exec.exit])
  return { stdout, stderr, exit }
}

async function textOf(stream: AsyncIterable<Uint8Array>): Promise<string> {
  let text = ''
  for await (const chunk of stream) text += Buffer.from(chunk).toString()
  return text
}
