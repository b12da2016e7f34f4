import { createRegistry, ScalarType } from '@bufbuild/protobuf'
import type { DescField, DescFile } from '@bufbuild/protobuf'
import { describe, expect, it } from 'vitest'

import { BackgroundComposerService, ErrorDetailsSchema, InteractionUpdateSchema } from './index.ts'
import { seedEnums, seedFields, seedNames, seedTypes } from './seed-numbers.ts'

/** Numbers from here on are ours in a message of the seeds. */
const firstOfOurs = 1000

const withImports = (file: DescFile): DescFile[] => [file, ...file.dependencies.flatMap(withImports)]
const registry = createRegistry(
  ...withImports(BackgroundComposerService.file),
  InteractionUpdateSchema.file,
  ErrorDetailsSchema.file,
)
const words = (text: string) => text.trim().split(/\s+/)

function fieldsOf(name: string): readonly DescField[] {
  const message = registry.getMessage(name)
  if (!message) throw new Error(`${name} is not defined`)
  return message.fields
}

/** As the table writes it: `string`, `string?` for optional, `string*` for repeated. */
function typeOf(field: DescField): string {
  const type = field.fieldKind === 'list' || field.fieldKind === 'scalar' ? field.scalar : undefined
  const mark = field.fieldKind === 'list' ? '*' : field.proto.proto3Optional ? '?' : ''
  return `${type === undefined ? field.fieldKind : ScalarType[type].toLowerCase()}${mark}`
}

describe('numbers of the seeds', () => {
  it.each(Object.entries(seedFields))('%s', (name, table) => {
    const given = words(table)
    const have = fieldsOf(name).filter((field) => field.number < firstOfOurs)
    const numbers = have.map((field) => `${field.name}=${field.number}`)
    expect(numbers).toEqual(expect.arrayContaining(given))
    const unnumbered = new Set(words(seedNames[name] ?? ''))
    expect(
      numbers.filter((entry) => !given.includes(entry) && !unnumbered.has(entry.split('=')[0]!)),
    ).toEqual([])
  })

  it.each(Object.entries(seedTypes))('types of %s', (name, table) => {
    const have = fieldsOf(name).map((field) => `${field.name}:${typeOf(field)}`)
    expect(have).toEqual(expect.arrayContaining(words(table)))
  })

  it.each(Object.entries(seedNames))('names of %s', (name, table) => {
    expect(fieldsOf(name).map((field) => field.name)).toEqual(expect.arrayContaining(words(table)))
  })

  it.each(Object.entries(seedEnums))('%s', (name, table) => {
    const values = registry.getEnum(name)?.values ?? []
    const prefix = `${values[0]?.name.replace(/UNSPECIFIED$/, '')}`
    expect(values.map((value) => value.name).filter((text) => !text.startsWith(prefix))).toEqual([])
    expect(values.map((value) => `${value.name.slice(prefix.length)}=${value.number}`)).toEqual(words(table))
  })

  it('are reserved where a seed skips them', () => {
    const ranges = registry.getMessage('aiserver.v1.StreamConversationResponse')?.proto.reservedRange
    expect(ranges?.map(({ start, end }) => [start, end])).toEqual([
      [1, 2],
      [2, 3],
    ])
  })

  it('and both unions are oneofs named as in the seeds', () => {
    for (const name of ['agent.v1.InteractionUpdate', 'aiserver.v1.StreamConversationResponse'])
      expect(fieldsOf(name).every((field) => field.oneof?.name === 'message')).toBe(true)
    const shell = fieldsOf('agent.v1.ShellOutputDeltaUpdate').filter((field) => field.number < firstOfOurs)
    expect(shell.every((field) => field.oneof?.name === 'event')).toBe(true)
  })
})

describe('methods of the seed service', () => {
  it('are those that are built, with the streaming kind of the seed', () => {
    const kinds = BackgroundComposerService.methods.map((method) => `${method.name} ${method.methodKind}`)
    expect(BackgroundComposerService.typeName).toBe('aiserver.v1.BackgroundComposerService')
    expect(kinds).toEqual([
      'StartParallelAgentWorkflow unary',
      'StreamParallelAgentWorkflowStatus server_streaming',
      'StartBackgroundComposerFromSnapshot unary',
      'AddAsyncFollowupBackgroundComposer unary',
      'StreamConversation server_streaming',
      'ListBackgroundComposers unary',
      'GetBackgroundComposerStatus unary',
      'GetBackgroundComposerInfo unary',
      'PauseBackgroundComposer unary',
      'ResumeBackgroundComposer unary',
      'ArchiveBackgroundComposer unary',
      'MakePRBackgroundComposer unary',
    ])
  })
})
