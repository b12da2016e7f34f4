import {
  ScalarType,
  isFieldSet,
  type DescField,
  type DescMessage,
  type MessageShape,
} from '@bufbuild/protobuf'
import { FeatureSet_FieldPresence } from '@bufbuild/protobuf/wkt'
import { reflect, type ReflectMessage } from '@bufbuild/protobuf/reflect'
import { toJson, type JsonValue } from '@bufbuild/protobuf'

const long: ReadonlySet<ScalarType> = new Set([
  ScalarType.INT64,
  ScalarType.UINT64,
  ScalarType.SINT64,
  ScalarType.FIXED64,
  ScalarType.SFIXED64,
])

/**
 * A message for `-o json`: the field names of the .proto files, every plain field present, absent messages as null, enum values
 * without their prefix (`RUNNING`), and 64-bit numbers as numbers (none of ours is beyond 2^53).
 */
export function messageJson<D extends DescMessage>(desc: D, message: MessageShape<D>): JsonValue {
  return object(reflect(desc, message))
}

function object(message: ReflectMessage): JsonValue {
  const { typeName } = message.desc
  if (typeName.startsWith('google.protobuf.')) return toJson(message.desc, message.message)
  const result: Record<string, JsonValue> = {}
  for (const field of message.fields) {
    if (field.oneof && !isFieldSet(message.message, field)) continue
    result[field.name] = fieldValue(message, field)
  }
  return result
}

function fieldValue(message: ReflectMessage, field: DescField): JsonValue {
  switch (field.fieldKind) {
    case 'message':
      return message.isSet(field) ? object(message.get(field)) : null
    case 'list': {
      const list = [...message.get(field)]
      if (field.listKind === 'message') return (list as ReflectMessage[]).map(object)
      if (field.listKind === 'enum') return list.map((value) => enumName(field, Number(value)))
      return list.map((value) => scalar(field.scalar, value))
    }
    case 'map':
      return Object.fromEntries(
        [...message.get(field)].map(([key, value]) => [String(key), mapValue(field, value)]),
      )
    case 'enum':
      return enumName(field, message.get(field))
    case 'scalar':
      return field.presence === FeatureSet_FieldPresence.EXPLICIT && !message.isSet(field)
        ? null
        : scalar(field.scalar, message.get(field))
  }
}

function mapValue(field: DescField & { fieldKind: 'map' }, value: unknown): JsonValue {
  if (field.mapKind === 'message') return object(value as ReflectMessage)
  if (field.mapKind === 'enum') return enumName(field, Number(value))
  return scalar(field.scalar, value)
}

function scalar(type: ScalarType, value: unknown): JsonValue {
  if (long.has(type)) return Number(value)
  return value instanceof Uint8Array ? Buffer.from(value).toString('base64') : (value as JsonValue)
}

function enumName(field: DescField, number: number): string {
  const { enum: desc } = field as {
    enum: { values: readonly { name: string; number: number }[]; sharedPrefix?: string }
  }
  const name = desc.values.find((value) => value.number === number)?.name ?? String(number)
  const prefix = desc.sharedPrefix?.toUpperCase() ?? ''
  return name.startsWith(prefix) ? name.slice(prefix.length) : name
}
