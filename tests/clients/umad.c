/* What no packaged tool does with libibumad. Prototypes and layouts are libibumad's; Debian has no header for them
 * without its development package. Each mode ends with exit code 0, or says on standard error what is wrong. */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

struct address {
    uint32_t qpn, qkey;
    uint16_t lid;
    uint8_t sl, path_bits, grh_present, gid_index, hop_limit, traffic_class, gid[16];
    uint32_t flow_label;
    uint16_t pkey_index;
    uint8_t reserved[6];
};
struct umad {
    uint32_t agent_id, status, timeout_ms, retries, length;
    struct address addr;
    uint8_t data[1 << 20];
};
struct reg_attr {
    uint8_t mgmt_class, mgmt_class_version;
    uint32_t flags;
    uint64_t method_mask[2];
    uint32_t oui;
    uint8_t rmpp_version;
};
struct node {
    struct node *next;
    const char *ca_name;
};

int umad_init(void);
int umad_done(void);
int umad_get_cas_names(char cas[][20], int max);
int umad_get_ca_portguids(const char *, uint64_t *, int);
int umad_get_issm_path(const char *, int, char[], int);
struct node *umad_get_ca_device_list(void);
int umad_sort_ca_device_list(struct node **, size_t);
void umad_free_ca_device_list(struct node *);
int umad_open_port(const char *, int);
int umad_close_port(int);
void *umad_get_mad(void *);
size_t umad_size(void);
int umad_status(void *);
struct address *umad_get_mad_addr(void *);
int umad_set_grh(void *, void *);
int umad_set_addr(void *, int, int, int, int);
int umad_set_addr_net(void *, int, int, int, int);
int umad_set_pkey(void *, int);
int umad_get_pkey(void *);
int umad_send(int, int, void *, int, int, int);
int umad_recv(int, void *, int *, int);
int umad_poll(int, int);
int umad_get_fd(int);
int umad_register(int, int, int, uint8_t, long[]);
int umad_register_oui(int, int, uint8_t, uint8_t[3], long[]);
int umad_register2(int, struct reg_attr *, uint32_t *);
int umad_unregister(int, int);
int umad_debug(int);
void umad_addr_dump(struct address *);
void umad_dump(void *);
const char *umad_class_str(uint8_t);
const char *umad_method_str(uint8_t, uint8_t);
const char *umad_attribute_str(uint8_t, uint16_t);
const char *umad_common_mad_status_str(uint16_t);
const char *umad_sa_mad_status_str(uint16_t);

#define CHECK(condition)                                                                                      \
    do {                                                                                                      \
        if (!(condition)) {                                                                                   \
            fprintf(stderr, "line %d: %s does not hold (errno %d)\n", __LINE__, #condition, errno);           \
            exit(1);                                                                                          \
        }                                                                                                     \
    } while (0)

static struct umad buffer;

/* A request for NodeInfo with this transaction id; by LID, or along a directed route without hops when it is 0. */
static void node_info(uint32_t tid, int lid) {
    memset(&buffer, 0, sizeof buffer - sizeof buffer.data + 256);
    uint8_t *mad = umad_get_mad(&buffer);
    mad[0] = 1;
    mad[1] = lid ? 0x01 : 0x81;
    mad[2] = 1;
    mad[3] = 1;
    tid = htonl(tid);
    memcpy(mad + 12, &tid, 4);
    mad[17] = 0x11;
    if (!lid)
        memset(mad + 32, 0xff, 4);
    CHECK(umad_set_addr(&buffer, lid ? lid : 0xffff, 0, 0, 0) == 0);
}

static uint32_t tid_of(void) {
    uint32_t tid;
    memcpy(&tid, (uint8_t *)umad_get_mad(&buffer) + 12, 4);
    return ntohl(tid);
}

/* The answer to node_info. */
static void answered(int port, int agent, uint32_t tid) {
    int length = 256;
    CHECK(umad_recv(port, &buffer, &length, 5000) == agent);
    CHECK(length == 256 && umad_status(&buffer) == 0 && tid_of() == tid);
    CHECK(buffer.length == 256 + umad_size());
    CHECK(buffer.data[3] == 0x81);
}

static int opened(void) {
    CHECK(umad_init() == 0);
    int port = umad_open_port(NULL, 0);
    CHECK(port >= 0 && umad_get_fd(port) == port);
    return port;
}

/* What a kernel does with one port, from opening to closing. */
static void basics(void) {
    char names[4][20];
    uint64_t guids[10];
    CHECK(umad_get_cas_names(names, 4) == 1 && !strcmp(names[0], "weft_0"));
    CHECK(umad_get_ca_portguids("weft_0", guids, 10) == 2 && guids[0] == 0 && guids[1] != 0);
    CHECK(umad_get_ca_portguids("weft_0", guids, 1) == -ENOMEM);
    CHECK(umad_open_port("mlx5_0", 1) < 0 && umad_open_port("weft_0", 7) < 0);
    struct node *list = umad_get_ca_device_list();
    CHECK(list && !strcmp(list->ca_name, "weft_0") && !list->next);
    CHECK(umad_sort_ca_device_list(&list, 0) == 0);
    umad_free_ca_device_list(list);
    struct node c = {NULL, "c"}, a = {&c, "a"}, b = {&a, "b"}, *three = &b;
    CHECK(umad_sort_ca_device_list(&three, 3) == 0);
    CHECK(three == &a && a.next == &b && b.next == &c && !c.next);

    int port = opened(), length = 256;
    CHECK(umad_recv(port, &buffer, &length, 0) == -EAGAIN && errno == EAGAIN);
    CHECK(umad_poll(port, 10) == -ETIMEDOUT);
    CHECK(umad_recv(port, &buffer, &length, 10) == -ETIMEDOUT && errno == ETIMEDOUT);
    CHECK(umad_recv(port, NULL, &length, 0) == -EINVAL);
    CHECK(umad_register(port, 0x81, 99, 0, NULL) == -EPERM && errno == EINVAL);
    CHECK(umad_register_oui(port, 0x04, 0, (uint8_t[]){0, 0x14, 5}, NULL) == -EINVAL);
    int agent = umad_register(port, 0x81, 1, 0, NULL);
    CHECK(agent == 0);
    long traps[2] = {1 << 5, 0};
    CHECK(umad_register(port, 0x01, 1, 0, traps) == 1);
    CHECK(umad_register(port, 0x01, 1, 0, traps) == -EPERM);
    CHECK(umad_unregister(port, 1) == 0);
    CHECK(umad_register(port, 0x01, 1, 0, traps) == 1);
    CHECK(umad_register_oui(port, 0x39, 1, (uint8_t[]){0, 0x14, 5}, traps) == 2);
    struct reg_attr attr = {.mgmt_class = 0x39, .mgmt_class_version = 1, .oui = 0, .rmpp_version = 1};
    uint32_t number = 77;
    CHECK(umad_register2(port, &attr, &number) == EINVAL && umad_register2(port, NULL, &number) == EINVAL);
    attr.oui = 0x1406;
    attr.flags = 2;
    CHECK(umad_register2(port, &attr, &number) == EINVAL && attr.flags == 0);
    attr.flags = 1;
    CHECK(umad_register2(port, &attr, &number) == 0 && number == 3);

    node_info(1, 0);
    CHECK(umad_send(port, agent, &buffer, 256, 1000, 3) == 0);
    CHECK(umad_poll(port, 5000) == 0);
    length = 255;
    CHECK(umad_recv(port, &buffer, &length, 0) == -EINVAL && length == 256);
    answered(port, agent, 1);
    /* The header is what was received, not what was sent. */
    CHECK(umad_get_mad_addr(&buffer)->lid == 0xffff && buffer.timeout_ms == 0);
    CHECK(umad_send(port, agent, &buffer, -1, 0, 0) == -EIO && errno == EINVAL);
    CHECK(umad_close_port(port) == 0 && umad_done() == 0);
    CHECK(umad_poll(port, 0) == -EIO);
}

/* Nobody answers: the request comes back with its header and status 110. */
static void timed_out(void) {
    int port = opened(), agent = umad_register(port, 1, 1, 0, NULL), length = 256;
    node_info(2, 0xbffe);
    CHECK(umad_send(port, agent, &buffer, 256, 20, 2) == 0);
    CHECK(umad_recv(port, &buffer, &length, 5000) == agent);
    CHECK(umad_status(&buffer) == ETIMEDOUT && length == 24 && tid_of() == 2);
    CHECK(ntohs(umad_get_mad_addr(&buffer)->lid) == 0xbffe);
}

/* SubnAdmGetTable(NodeRecord), whose answer needs a longer buffer than one MAD's. */
static void long_answer(int sm_lid) {
    int port = opened(), agent = umad_register(port, 3, 2, 1, NULL), length = 256;
    memset(&buffer, 0, sizeof buffer);
    uint8_t *mad = umad_get_mad(&buffer);
    mad[0] = 1, mad[1] = 3, mad[2] = 2, mad[3] = 0x12, mad[15] = 9, mad[17] = 0x11;
    umad_set_addr(&buffer, sm_lid, 1, 0, 0x80010000);
    CHECK(umad_send(port, agent, &buffer, 256, 1000, 3) == 0);
    CHECK(umad_recv(port, &buffer, &length, 5000) == -ENOSPC && errno == ENOSPC);
    CHECK(length > 256 && length < (int)sizeof buffer.data);
    int needed = length--;
    /* It stays until there is room for it, and shows its first 256 bytes. */
    CHECK(buffer.data[1] == 3 && buffer.data[3] == 0x92);
    CHECK(umad_recv(port, &buffer, &length, 0) == -ENOSPC && length == needed);
    CHECK(umad_recv(port, &buffer, &length, 0) == agent && length == needed);
    printf("%d bytes\n", length);
    length = 256;
    CHECK(umad_recv(port, &buffer, &length, 0) == -EAGAIN);
}

/* One open port over joins and leaves: for each line `LID INDEX`, whether an adapter answers what is sent by that place of the P_Key table. */
static void keys(void) {
    int port = opened(), agent = umad_register(port, 4, 1, 0, NULL), lid, index;
    CHECK(agent >= 0);
    for (uint32_t tid = 1; scanf("%d %d", &lid, &index) == 2; tid++) {
        memset(&buffer, 0, sizeof buffer - sizeof buffer.data + 256);
        uint8_t *mad = umad_get_mad(&buffer);
        mad[0] = 1, mad[1] = 4, mad[2] = 1, mad[3] = 1, mad[17] = 1;
        uint32_t number = htonl(tid);
        memcpy(mad + 12, &number, 4);
        CHECK(umad_set_addr(&buffer, lid, 1, 0, 0x80010000) == 0);
        CHECK(umad_set_pkey(&buffer, index) == 0 && umad_get_pkey(&buffer) == index);
        CHECK(umad_send(port, agent, &buffer, 256, 300, 1) == 0);
        int length = 256;
        CHECK(umad_recv(port, &buffer, &length, 20000) == agent && tid_of() == tid);
        puts(umad_status(&buffer) ? "no" : "yes");
        fflush(stdout);
    }
    CHECK(umad_close_port(port) == 0);
}

/* Parent and child share the port. */
static void forked(void) {
    int port = opened(), agent = umad_register(port, 0x81, 1, 0, NULL);
    pid_t child = fork();
    if (child == 0) {
        int own = umad_register(port, 1, 1, 0, NULL);
        CHECK(own == 1);
        for (uint32_t tid = 1; tid < 100; tid++) {
            node_info(tid, 0);
            CHECK(umad_send(port, agent, &buffer, 256, 1000, 3) == 0);
            answered(port, agent, tid);
        }
        exit(0);
    }
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    node_info(1000, 0);
    CHECK(umad_send(port, agent, &buffer, 256, 1000, 3) == 0);
    answered(port, agent, 1000);
}

static void *receiver(void *port) {
    static struct umad own;
    int length = 256;
    for (;;)
        umad_recv(*(int *)port, &own, &length, -1);
    return NULL;
}

/* A thread that waits for a MAD can be cancelled, and the port is as good as before. */
static void cancelled(void) {
    int port = opened(), agent = umad_register(port, 0x81, 1, 0, NULL);
    for (uint32_t tid = 1; tid < 20; tid++) {
        pthread_t thread;
        void *ended;
        CHECK(pthread_create(&thread, NULL, receiver, &port) == 0);
        if (tid % 2)
            poll(NULL, 0, 2);
        CHECK(pthread_cancel(thread) == 0 && pthread_join(thread, &ended) == 0);
        CHECK(ended == PTHREAD_CANCELED);
        node_info(tid, 0);
        CHECK(umad_send(port, agent, &buffer, 256, 1000, 3) == 0);
        answered(port, agent, tid);
    }
}

static void *sender(void *port) {
    static _Thread_local struct umad own;
    for (int i = 0; i < 200; i++) {
        memcpy(&own, &buffer, sizeof buffer - sizeof buffer.data + 256);
        CHECK(umad_send(*(int *)port, 0, &own, 256, 0, 0) == 0);
    }
    return NULL;
}

/* Several threads send through one port; as many answers come back. */
static void threads(void) {
    int port = opened(), length;
    long gets[2] = {1 << 1, 0};
    CHECK(umad_register(port, 0x39, 1, 0, NULL) == 0);
    CHECK(umad_register(port, 0x39, 1, 0, gets) == 1);
    memset(&buffer, 0, sizeof buffer);
    buffer.data[0] = 1, buffer.data[1] = 0x39, buffer.data[2] = 1, buffer.data[3] = 1;
    memcpy(buffer.data + 36, (uint8_t[]){0, 0, 0x14, 5}, 4);
    umad_set_addr(&buffer, atoi(getenv("OWN_LID")), 1, 0, 0x80010000);
    pthread_t senders[4];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&senders[i], NULL, sender, &port) == 0);
    static struct umad own;
    for (int i = 0; i < 800; i++) {
        length = 256;
        CHECK(umad_recv(port, &own, &length, 5000) == 1 && length == 256);
    }
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(senders[i], NULL) == 0);
}

/* What ibsendtrap sends, which no package has: each trap that it knows, to the subnet manager, which must repress it. */
static void traps(int lid, int own) {
    static const uint16_t numbers[] = {129, 144, 145, 256, 257, 258};
    int port = opened();
    int agent = umad_register(port, 0x01, 1, 0, NULL);
    for (uint32_t at = 0; at < sizeof numbers / sizeof *numbers; at++) {
        node_info(100 + at, lid);
        uint8_t *mad = umad_get_mad(&buffer);
        mad[3] = 0x05;
        mad[17] = 0x02;
        mad[64] = 0x80 | (numbers[at] == 129 ? 1 : numbers[at] > 255 ? 2 : 4);
        mad[67] = 1;
        uint16_t number = htons(numbers[at]), issuer = htons(own);
        memcpy(mad + 68, &number, 2);
        memcpy(mad + 70, &issuer, 2);
        CHECK(umad_send(port, agent, &buffer, 256, 1000, 10) == 0);
        int length = 256;
        CHECK(umad_recv(port, &buffer, &length, 20000) == agent);
        CHECK(length == 256 && umad_status(&buffer) == 0 && tid_of() == 100 + at);
        CHECK(buffer.data[3] == 0x07 && !memcmp(buffer.data + 68, &number, 2));
    }
}

/* Requests that nobody will answer, and then nothing until it is killed. */
static void outstanding(void) {
    int port = opened();
    long traps[2] = {1 << 5, 0};
    int agent = umad_register(port, 1, 1, 0, getenv("TRAPS") ? traps : NULL);
    CHECK(agent == 0);
    for (uint32_t tid = 1; tid <= 10; tid++) {
        node_info(tid, 0xbffe);
        CHECK(umad_send(port, agent, &buffer, 256, 1000000, 10) == 0);
    }
    /* An answer to something else tells that the agent has read all of it. */
    int smi = umad_register(port, 0x81, 1, 0, NULL);
    node_info(99, 0);
    CHECK(umad_send(port, smi, &buffer, 256, 1000, 3) == 0);
    answered(port, smi, 99);
    puts("ready");
    fflush(stdout);
    for (;;)
        pause();
}

/* What can be asked of libibumad without any port. */
static void texts(void) {
    for (int class = 0; class < 256; class++) {
        printf("%s\n", umad_class_str(class));
        for (int method = 0; method < 256; method++)
            printf("%s\n", umad_method_str(class, method));
        for (int attribute = 0; attribute < 0x120; attribute++)
            printf("%s\n", umad_attribute_str(class, htons(attribute)));
        printf("%s\n", umad_attribute_str(class, htons(0xff90)));
    }
    for (int status = 0; status < 65536; status++)
        printf("%s %s\n", umad_common_mad_status_str(status), umad_sa_mad_status_str(status));
}

/* The buffer's functions; prints the bytes that they made. */
static void buffers(void) {
    struct address route = {.flow_label = 0x12345, .hop_limit = 7, .traffic_class = 8, .gid = {0xfe, 0x80}};
    umad_set_addr(&buffer, 0x1234, 0x56789a, 3, 0x80010000);
    umad_set_addr_net(&buffer, htons(7), htonl(1), 2, htonl(0x80010000));
    umad_set_grh(&buffer, &route);
    buffer.addr.pkey_index = 5;
    buffer.status = 110;
    for (size_t at = 0; at < 64; at++)
        printf("%02x", ((uint8_t *)&buffer)[at]);
    umad_set_grh(&buffer, NULL);
    printf(" %d %d\n", buffer.addr.grh_present, umad_status(&buffer));
    printf("%d %d\n", umad_debug(-1), umad_debug(0));
    CHECK(umad_get_mad_addr(&buffer) == &buffer.addr);
    umad_dump(&buffer);
    umad_addr_dump(&buffer.addr);
}

/* The device is pulled out while a program waits for an answer: Linux's ib_umad_read then says EIO, and opening it again ENODEV. */
static void leaves(void) {
    int length = 256, port = opened();
    CHECK(umad_register(port, 0x01, 1, 0, NULL) >= 0);
    puts("ready");
    fflush(stdout);
    CHECK(umad_recv(port, &buffer, &length, 60000) == -EIO && errno == EIO);
    CHECK(umad_close_port(port) == 0);
    CHECK(umad_open_port(NULL, 0) == -ENODEV);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    if (!strcmp(mode, "basics"))
        basics();
    else if (!strcmp(mode, "timed-out"))
        timed_out();
    else if (!strcmp(mode, "long-answer"))
        long_answer(atoi(arguments[2]));
    else if (!strcmp(mode, "traps"))
        traps(atoi(arguments[2]), strtol(arguments[3], NULL, 0));
    else if (!strcmp(mode, "keys"))
        keys();
    else if (!strcmp(mode, "forked"))
        forked();
    else if (!strcmp(mode, "cancelled"))
        cancelled();
    else if (!strcmp(mode, "threads"))
        threads();
    else if (!strcmp(mode, "outstanding"))
        outstanding();
    else if (!strcmp(mode, "texts"))
        texts();
    else if (!strcmp(mode, "buffers"))
        buffers();
    else if (!strcmp(mode, "leaves"))
        leaves();
    else
        return 2;
    return 0;
}
