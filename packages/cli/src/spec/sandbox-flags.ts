import { resolve } from 'node:path'
import type { Command } from 'commander'
import { create } from '@bufbuild/protobuf'
import { TuttiError } from '@tutti/core'
import { Isolation, OnQuestion, SandboxSpecSchema, type SandboxSpec } from '@tutti/proto'
import { collect } from './collect.ts'

/** The flags about an agent's sandbox, the same for `run` and `agent create`. */
export interface SandboxFlags {
  readonly setup?: string
  readonly readyTimeout?: string
  readonly allowHost?: readonly string[]
  readonly allowNetwork?: boolean
  readonly env?: readonly string[]
  readonly mount?: readonly string[]
  readonly isolation?: 'bubblewrap' | 'none'
  readonly onQuestion?: 'wait' | 'fail' | 'default'
  readonly questionTimeout?: string
}

export function addSandboxFlags(command: Command): Command {
  return command
    .option('--setup <command>', 'run in each new sandbox before the agent starts')
    .option(
      '--ready-timeout <duration>',
      'how long a sandbox may take until it is ready, all boots together (default: 10m)',
    )
    .option('--allow-host <host>', 'a host that the sandbox may reach (repeat)', collect)
    .option('--allow-network', 'let the sandbox reach the whole network')
    .option(
      '--env <name[=value]>',
      "an environment variable; without a value, the worker's (repeat)",
      collect,
    )
    .option('--mount <path>', 'a path of this machine, mounted read-only at the same place (repeat)', collect)
    .addOption(
      command
        .createOption('--isolation <kind>', 'how agents are isolated (default: bubblewrap)')
        .choices(['bubblewrap', 'none']),
    )
    .addOption(
      command
        .createOption(
          '--on-question <what>',
          'when an agent asks: wait for an answer, end the turn, or take its default (default: wait)',
        )
        .choices(['wait', 'fail', 'default']),
    )
    .option('--question-timeout <duration>', 'how long a question waits, for example 5m (default: 30m)')
}

const isolations = { bubblewrap: Isolation.BUBBLEWRAP, none: Isolation.NONE }
const questions = { wait: OnQuestion.WAIT, fail: OnQuestion.FAIL, default: OnQuestion.DEFAULT }

export const onQuestionOf = (flags: SandboxFlags): OnQuestion =>
  flags.onQuestion === undefined ? OnQuestion.UNSPECIFIED : questions[flags.onQuestion]

/**
 * Fills a sandbox spec from flags, on top of what a file said.
 *
 * @param cwd relative mounts are below it
 * @throws TuttiError `invalid_argument` for an `--env` without a name.
 */
export function fillSandbox(base: SandboxSpec | undefined, flags: SandboxFlags, cwd: string): SandboxSpec {
  const spec = base ?? create(SandboxSpecSchema)
  if (flags.isolation !== undefined) spec.isolation = isolations[flags.isolation]
  spec.allowHosts.push(...(flags.allowHost ?? []))
  if (flags.allowNetwork === true) spec.allowNetwork = true
  spec.mounts.push(...(flags.mount ?? []).map((path) => resolve(cwd, path)))
  for (const given of flags.env ?? []) {
    const equals = given.indexOf('=')
    const name = equals < 0 ? given : given.slice(0, equals)
    if (!/^[A-Za-z_][A-Za-z0-9_]*$/.test(name)) {
      throw new TuttiError(
        'invalid_argument',
        '--env: write NAME or NAME=VALUE; a name has letters, digits and _.',
        {
          field: '--env',
        },
      )
    }
    if (equals >= 0) spec.envValues[name] = given.slice(equals + 1)
    else if (!spec.env.includes(name)) spec.env.push(name)
  }
  return spec
}
